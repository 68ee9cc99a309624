package rpc

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestClip(t *testing.T) {
	for limit := 3; limit < 40; limit++ {
		s := strings.Repeat("aß語𝄞", 9)
		if got := Clip(s, limit); len(got) > limit || !utf8.ValidString(got) {
			t.Errorf("clip to %d: %q", limit, got)
		}
	}
	if Clip("short", 5) != "short" {
		t.Error("what fits is cut")
	}
}

// The words of a request that are told to nobody, wherever they stand in it.
func TestConfidential(t *testing.T) {
	mount := &csi.VolumeCapability{AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: "ext4", MountFlags: []string{"password=geheim", "ro"}}}}
	got := confidential((&csi.CreateVolumeRequest{Name: "vol", Secrets: map[string]string{"key": "hunter2", "short": "ab"},
		VolumeCapabilities: []*csi.VolumeCapability{mount}}).ProtoReflect())
	got = append(got, confidential((&csi.NodePublishVolumeRequest{VolumeContext: map[string]string{TokensKey + "/audience": "token", "other": "said"}}).ProtoReflect())...)
	slices.Sort(got)
	if want := []string{"geheim", "hunter2", "password=geheim", "token"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestCodes(t *testing.T) {
	table := Codes{{fs.ErrExist, codes.AlreadyExists}, {fs.ErrNotExist, codes.NotFound}}
	for _, c := range []struct {
		err  error
		code codes.Code
		ok   bool
	}{
		{fmt.Errorf("x: %w", fs.ErrNotExist), codes.NotFound, true},
		{errors.Join(fs.ErrNotExist, fs.ErrExist), codes.AlreadyExists, true},
		{fmt.Errorf("x: %w", status.Error(codes.Aborted, "y")), codes.Aborted, true},
		{errors.New("else"), codes.OK, false},
	} {
		if _, code, ok := table.Find(c.err); code != c.code || ok != c.ok {
			t.Errorf("%v: %v, %v", c.err, code, ok)
		}
	}
}
