package addons

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	wire "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/csi-addons/spec/lib/go/encryptionkeyrotation"
	"github.com/drivebay/drivebay/addons/healer"
	"github.com/drivebay/drivebay/internal/rpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// What a request brings in confidence comes back in no answer and no log, whatever
// the engine says.
func TestConfidence(t *testing.T) {
	m := there()
	_, conn, log := rig(t, m)
	words := []string{"secretword", "flagword", "keyword", "tokenword"}
	secrets := map[string]string{"passphrase": "secretword"}
	m.fails.Store(new(fmt.Errorf("mount -o password=flagword: %w of secretword, tokenword", errors.New("a gremlin"))))
	_, err := healer.NewHealerNodeClient(conn).NodeHealer(t.Context(), &healer.NodeHealerRequest{VolumeId: "well", VolumePath: "/v", Secrets: secrets,
		VolumeCapability: mountOf("ext4"), VolumeContext: map[string]string{rpc.TokensKey: "tokenword"}})
	m.fails.Store(new(errors.New("keyword is not secretword")))
	_, err2 := encryptionkeyrotation.NewEncryptionKeyRotationControllerClient(conn).EncryptionKeyRotate(t.Context(),
		&encryptionkeyrotation.EncryptionKeyRotateRequest{VolumeId: "well", Secrets: secrets, EncryptionKey: "keyword"})
	for _, err := range []error{err, err2} {
		if status.Code(err) != codes.Unknown || !strings.Contains(err.Error(), "(withheld)") {
			t.Errorf("ends with %v", err)
		}
	}
	told := fmt.Sprint(err, err2, log)
	for _, word := range words {
		if strings.Contains(told, word) {
			t.Errorf("%q is told: %s", word, told)
		}
	}
	if strings.Count(log.String(), "level=ERROR") != 2 || !strings.Contains(log.String(), "a gremlin") {
		t.Errorf("nobody can study the log: %s", log)
	}
}

func TestPanic(t *testing.T) {
	m := there()
	_, conn, log := rig(t, m)
	m.panics.Store(true)
	call := func() error {
		_, err := healer.NewHealerNodeClient(conn).NodeHealer(t.Context(), &healer.NodeHealerRequest{VolumeId: "well", VolumePath: "/v"})
		return err
	}
	if err := call(); status.Code(err) != codes.Internal || !strings.Contains(err.Error(), "NodeHealer") {
		t.Errorf("ends with %v", err)
	}
	if err := call(); err != nil {
		t.Errorf("the next call: %v", err)
	}
	if s := log.String(); !strings.Contains(s, "memory_test.go") || strings.Contains(s, "secret-of-the-panic") {
		t.Errorf("the log: %s", s)
	}
}

func TestTooLarge(t *testing.T) {
	m := there()
	_, err := heal(t, m, &healer.NodeHealerRequest{VolumeId: "well", VolumePath: "/v", Secrets: map[string]string{"a": strings.Repeat("x", rpc.MaxMessage)}})
	if status.Code(err) != codes.ResourceExhausted || m.last() != nil {
		t.Errorf("ends with %v", err)
	}
	m.fails.Store(new(errors.New(strings.Repeat("ß", 5000))))
	if _, err := heal(t, m, &healer.NodeHealerRequest{VolumeId: "well", VolumePath: "/v"}); len(status.Convert(err).Message()) > rpc.MaxText {
		t.Errorf("an error of %d bytes", len(err.Error()))
	}
}

// Every string that a request can have is bounded, nested ones too.
func TestNestedFields(t *testing.T) {
	long := strings.Repeat("x", maxMap+1)
	for _, c := range []*wire.VolumeCapability{
		mountOf(long), {AccessType: &wire.VolumeCapability_Mount{Mount: &wire.VolumeCapability_MountVolume{MountFlags: []string{long}}}}} {
		if _, err := heal(t, there(), &healer.NodeHealerRequest{VolumeId: "well", VolumePath: "/v", VolumeCapability: c}); status.Code(err) != codes.InvalidArgument {
			t.Errorf("ends with %v", err)
		}
	}
}
