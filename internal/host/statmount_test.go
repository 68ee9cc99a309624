package host

import (
	"errors"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestStatmountStructure(t *testing.T) {
	if n := unsafe.Sizeof(statmountReply{}); n != 512 {
		t.Errorf("struct statmount has %d bytes before its strings, want 512", n)
	}
	if n := unsafe.Offsetof(statmountReply{}.supported); n != 144 {
		t.Errorf("supported_mask is at %d, want 144", n)
	}
	if mountRequestSize != 24 {
		t.Errorf("struct mnt_id_req has %d bytes, want 24", mountRequestSize)
	}
}

// Both ways tell the same story, or one of them is wrong.
func TestMountsAgree(t *testing.T) {
	called, err := mountsByCall()
	if errors.Is(err, errIncomplete) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		t.Skipf("this kernel lists its mounts only as text: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	tree, err := newTree("/")
	if err != nil {
		t.Fatal(err)
	}
	b, err := tree.ReadFile("proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	compareMounts(t, called, parseMountinfo(string(b)))
}

func compareMounts(t *testing.T, got, want []Mount) {
	t.Helper()
	byID := func(a, b Mount) int { return a.ID - b.ID }
	slices.SortFunc(got, byID)
	slices.SortFunc(want, byID)
	if len(got) == 0 || len(got) != len(want) {
		t.Fatalf("%d mounts by call, %d in mountinfo", len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("by call   %+v\nmountinfo %+v", got[i], want[i])
		}
	}
}

func BenchmarkMounts(b *testing.B) {
	tree, err := newTree("/")
	if err != nil {
		b.Fatal(err)
	}
	b.Run("call", func(b *testing.B) {
		for b.Loop() {
			if _, err := mountsByCall(); err != nil {
				b.Skip(err)
			}
		}
	})
	b.Run("text, remembered", func(b *testing.B) {
		var t mountTable
		for b.Loop() {
			if _, err := t.of(tree); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("text", func(b *testing.B) {
		for b.Loop() {
			if _, err := new(mountTable).of(tree); err != nil {
				b.Fatal(err)
			}
		}
	})
}
