package drivebay

import "testing"

func TestSpaceOf(t *testing.T) {
	size, free, none := uint64(100), uint64(30), uint64(0)
	for _, tc := range []struct {
		fs   *FSFacts
		want *Space
	}{
		{nil, nil},
		{&FSFacts{Bytes: &size}, nil},
		{&FSFacts{Bytes: &size, Free: &free, Reserved: 5}, &Space{Used: 65, Free: 30}},
		{&FSFacts{Bytes: &size, Free: &none}, &Space{Used: 100, Free: 0}},
		{&FSFacts{Bytes: &free, Free: &size}, &Space{Used: 0, Free: 100}}, // read while it grew
	} {
		if got := SpaceOf(&Facts{FS: tc.fs}); (got == nil) != (tc.want == nil) || got != nil && *got != *tc.want {
			t.Errorf("%+v: %+v, want %+v", tc.fs, got, tc.want)
		}
	}
}
