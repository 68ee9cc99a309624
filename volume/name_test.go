package volume_test

import (
	"errors"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume"
)

// TestRestoreName: a volume that was found without its name gets it from a memory of the same volume only, and keeps it.
func TestRestoreName(t *testing.T) {
	t.Parallel()
	onMachine(t, smallDrives(), volume.Options{}, func(s *stand) {
		const name = "ext4 on a partition"
		v := s.make(name, requests()[name])
		s.forget()
		if is := s.of(v); is.Name != "" {
			s.Fatalf("the drives have the name %q", is.Name)
		}
		another := v
		another.Location.Partition = "00000000-0000-4000-8000-000000000000"
		renamed := v
		renamed.Name = "other"
		for what, c := range map[string]struct {
			was  drivebay.Volume
			want error
		}{"another partition": {another, drivebay.ErrRefused}, "no partition": {drivebay.Volume{Name: name}, drivebay.ErrRefused}, "another name": {renamed, drivebay.ErrInvalid}} {
			if err := s.e.RestoreName(v.ID, c.was); !errors.Is(err, c.want) || s.of(v).Name != "" {
				s.Errorf("%s: %v, %q", what, err, s.of(v).Name)
			}
		}
		if err := s.e.RestoreName(v.ID, v); err != nil {
			s.Fatal(err)
		}
		if is := s.of(v); is.Name != name || !is.Created.Equal(v.Created) {
			s.Errorf("%q, created %v", is.Name, is.Created)
		}
		if err := s.e.RestoreName(v.ID, renamed); err != nil || s.of(v).Name != name {
			s.Errorf("a second name: %v, %q", err, s.of(v).Name)
		}
		if err := s.e.RestoreName("none", v); !errors.Is(err, drivebay.ErrNotFound) {
			s.Errorf("no such volume: %v", err)
		}
		s.start()
		if is := s.of(v); is.Name != name {
			s.Errorf("after a restart it is %q", is.Name)
		}
	})
}
