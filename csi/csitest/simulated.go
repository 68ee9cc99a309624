package csitest

import (
	"path"
	"strings"

	"github.com/drivebay/drivebay/internal/host"
	"github.com/drivebay/drivebay/internal/hostsim"
	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
)

// Simulated are the paths below Root on a simulated machine, which are nowhere else.
type Simulated struct {
	Machine *hostsim.Machine
	Root    string
}

func (s Simulated) place(p string) host.Place {
	return host.Place{Root: s.Root, Name: strings.TrimPrefix(p, s.Root+"/")}
}

func (s Simulated) MakeFolder(p string) error {
	if parent := path.Dir(p); parent != s.Root {
		if err := s.MakeFolder(parent); err != nil {
			return err
		}
	}
	return s.Machine.MakeFolder(s.place(p))
}

func (s Simulated) Remove(p string) error { return s.Machine.Remove(s.place(p)) }

func (s Simulated) Kind(p string) (sanity.PathKind, error) {
	kind, err := s.Machine.Look(s.place(p))
	switch kind {
	case host.PlaceNothing:
		return sanity.PathIsNotFound, err
	case host.PlaceFolder:
		return sanity.PathIsDir, err
	case host.PlaceFile:
		return sanity.PathIsFile, err
	}
	return sanity.PathIsOther, err
}
