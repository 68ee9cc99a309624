package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/drivebay/drivebay"
)

// VolumeBody requests a volume.
type VolumeBody struct {
	Name       string            `json:"name"`                 // calls with the same name return the same volume
	Size       uint64            `json:"size,omitempty"`       // minimum size in bytes; 0: 1 GiB
	Limit      uint64            `json:"limit,omitempty"`      // maximum size in bytes; 0: no limit
	Block      bool              `json:"block,omitempty"`      // a block device instead of a filesystem
	FSType     string            `json:"fsType,omitempty"`     // type of the filesystem; empty: that of the class
	Parameters map[string]string `json:"parameters,omitempty"` // the class, as parameters of a StorageClass
	Source     drivebay.Source   `json:"source,omitzero"`      // the initial content, by id or name
	Passphrase Passphrase        `json:"passphrase,omitempty"` // passphrase of an encrypted volume; not stored
}

// These are the bodies of the other calls about volumes.
type (
	expandBody struct {
		Size       uint64     `json:"size"`                 // new size in bytes
		Passphrase Passphrase `json:"passphrase,omitempty"` // passphrase of an encrypted volume that is in use
	}
	snapshotBody struct {
		Name string `json:"name"` // calls with the same name return the same snapshot
	}
)

// maxName is the longest name of a volume or snapshot (CSI specification, size limits).
const maxName = 128

func checkName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("name: %w: required", drivebay.ErrInvalid)
	case len(name) > maxName:
		return fmt.Errorf("name: %w: it is longer than %d bytes", drivebay.ErrInvalid, maxName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("name %q: %w: it cannot be shown", name, drivebay.ErrInvalid)
	}
	return nil
}

// request returns the body as a request to the engine.
func (b *VolumeBody) request() (r drivebay.VolumeRequest, err error) {
	switch {
	case b.Limit > 0 && b.Limit < b.Size:
		err = fmt.Errorf("limit: %w: %d is less than the size, %d", drivebay.ErrInvalid, b.Limit, b.Size)
	case b.Block && b.FSType != "":
		err = fmt.Errorf("fsType: %w: a block volume has none", drivebay.ErrInvalid)
	case b.FSType != "" && !slices.Contains(drivebay.FSTypes, b.FSType):
		err = fmt.Errorf("fsType: %w: %q; supported are %s", drivebay.ErrInvalid, b.FSType, strings.Join(drivebay.FSTypes, ", "))
	case b.Source.Snapshot != "" && b.Source.Volume != "":
		err = fmt.Errorf("source: %w: a snapshot or a volume, not both", drivebay.ErrInvalid)
	default:
		err = errors.Join(checkName(b.Name), b.Passphrase.check())
	}
	if err != nil {
		return r, err
	}
	class, err := drivebay.ParseClass(b.Parameters)
	if err == nil && class.Encryption == "" && b.Passphrase != "" {
		err = fmt.Errorf("passphrase: %w: the volume is not to be encrypted, there is no %s", drivebay.ErrInvalid, drivebay.ParameterEncryption)
	}
	return drivebay.VolumeRequest{
		Name: b.Name, Size: drivebay.SizeRange{Required: b.Size, Limit: b.Limit},
		Block: b.Block, FSType: b.FSType, Class: class, Source: b.Source, Secrets: b.Passphrase.secrets(),
	}, err
}

// named returns the source with ids instead of names.
func (s volumeHandlers) named(source drivebay.Source) (drivebay.Source, error) {
	if source.Snapshot != "" {
		snap, err := s.findSnapshot(source.Snapshot, true)
		if err != nil {
			return source, fmt.Errorf("source: %w", err)
		}
		source.Snapshot = snap.ID
	}
	if source.Volume != "" {
		v, err := s.findVolume(source.Volume)
		if err != nil {
			return source, fmt.Errorf("source: %w", err)
		}
		source.Volume = v.ID
	}
	return source, nil
}

func (s volumeHandlers) createVolume(w http.ResponseWriter, r *http.Request) error {
	return work(s, w, r, func(ctx context.Context, engine Volumes, b VolumeBody) (any, error) {
		request, err := b.request()
		if err == nil {
			request.Source, err = s.named(request.Source)
		}
		if err != nil {
			return nil, err
		}
		return engine.CreateVolume(ctx, request)
	})
}

// deleteVolume and forgetVolume require the whole id or name: the start of an id may match another
// volume.
func (s volumeHandlers) deleteVolume(w http.ResponseWriter, r *http.Request) error {
	return onWholeVolume(s, w, r, Volumes.DeleteVolume)
}

func (s volumeHandlers) forgetVolume(w http.ResponseWriter, r *http.Request) error {
	return onWholeVolume(s, w, r, Volumes.ForgetVolume)
}

// adoptVolume requires the whole id: a volume that was found may have no name.
func (s volumeHandlers) adoptVolume(w http.ResponseWriter, r *http.Request) error {
	return work(s, w, r, func(ctx context.Context, engine Volumes, _ struct{}) (any, error) {
		return nil, engine.AdoptVolume(ctx, r.PathValue("id"))
	})
}

// acceptLoss requires the whole id or name, as deleteVolume does.
func (s volumeHandlers) acceptLoss(w http.ResponseWriter, r *http.Request) error {
	return onWholeVolume(s, w, r, Volumes.AcceptLoss)
}

func onWholeVolume(s volumeHandlers, w http.ResponseWriter, r *http.Request, do func(Volumes, context.Context, string) error) error {
	return work(s, w, r, func(ctx context.Context, engine Volumes, _ struct{}) (any, error) {
		set, err := s.volumeSet()
		if err != nil {
			return nil, err
		}
		v, err := set.ResolveWhole(r.PathValue("id"))
		if err != nil {
			return nil, err
		}
		return nil, do(engine, ctx, v.ID)
	})
}

// expandVolume grows the device, and the filesystem if it is mounted. The status stays RESIZED if
// the filesystem is not mounted, or if the volume is encrypted and the request has no passphrase:
// the filesystem then grows when the volume is staged the next time.
func (s volumeHandlers) expandVolume(w http.ResponseWriter, r *http.Request) error {
	return work(s, w, r, func(ctx context.Context, engine Volumes, b expandBody) (any, error) {
		if b.Size == 0 {
			return nil, fmt.Errorf("size: %w: required", drivebay.ErrInvalid)
		}
		v, err := s.findVolume(r.PathValue("id"))
		if err = errors.Join(err, b.Passphrase.check()); err != nil {
			return nil, err
		}
		grown, node, err := engine.ExpandVolume(ctx, v.ID, drivebay.SizeRange{Required: b.Size})
		if err != nil || !node || len(grown.Publications) == 0 || grown.Encrypted() && b.Passphrase == "" {
			return grown, err
		}
		if _, err := engine.ExpandNode(ctx, v.ID, grown.Publications[0].Path, drivebay.SizeRange{Required: b.Size}, b.Passphrase.secrets()); err != nil {
			return nil, err
		}
		if now, ok := engine.Volumes().Get(v.ID); ok {
			grown = now.Volume
		}
		return grown, nil
	})
}

func (s volumeHandlers) scrubVolume(w http.ResponseWriter, r *http.Request) error {
	return onVolume(s, w, r, Volumes.ScrubVolume)
}

func (s volumeHandlers) retryVolume(w http.ResponseWriter, r *http.Request) error {
	return onVolume(s, w, r, Volumes.RetryVolume)
}

func (s volumeHandlers) clearVolume(w http.ResponseWriter, r *http.Request) error {
	return onVolume(s, w, r, Volumes.ClearVolume)
}

func (s volumeHandlers) moveBeforeUse(w http.ResponseWriter, r *http.Request) error {
	return work(s, w, r, func(ctx context.Context, engine Volumes, b switchBody) (any, error) {
		on, wrong := b.value()
		v, err := s.findVolume(r.PathValue("id"))
		if err = errors.Join(wrong, err); err != nil {
			return nil, err
		}
		return nil, engine.MoveBeforeUse(ctx, v.ID, on)
	})
}

func (s volumeHandlers) releaseVolume(w http.ResponseWriter, r *http.Request) error {
	return onVolume(s, w, r, Volumes.ReleaseVolume)
}

// onVolume calls do, which needs only the id of the volume.
func onVolume(s volumeHandlers, w http.ResponseWriter, r *http.Request, do func(Volumes, context.Context, string) error) error {
	return work(s, w, r, func(ctx context.Context, engine Volumes, _ struct{}) (any, error) {
		v, err := s.findVolume(r.PathValue("id"))
		if err != nil {
			return nil, err
		}
		return nil, do(engine, ctx, v.ID)
	})
}

// HealBody requests the repair of a volume.
type HealBody struct {
	DryRun     bool       `json:"dryRun,omitempty"`     // only report what would be done
	Fsck       bool       `json:"fsck,omitempty"`       // also repair the filesystem, which must not be mounted
	Options    []string   `json:"options,omitempty"`    // options that the volume was mounted with
	Passphrase Passphrase `json:"passphrase,omitempty"` // passphrase of an encrypted volume; not stored
}

// healVolume answers with the steps that were done. The volume itself has the state after them.
func (s volumeHandlers) healVolume(w http.ResponseWriter, r *http.Request) error {
	return work(s, w, r, func(ctx context.Context, engine Volumes, b HealBody) (any, error) {
		v, err := s.findVolume(r.PathValue("id"))
		if err = errors.Join(err, b.Passphrase.check()); err != nil {
			return nil, err
		}
		block := !v.HasFilesystem()
		return engine.Heal(ctx, drivebay.HealRequest{Volume: v.ID, DryRun: b.DryRun, Fsck: b.Fsck, Block: &block, Options: b.Options, Secrets: b.Passphrase.secrets()})
	})
}
