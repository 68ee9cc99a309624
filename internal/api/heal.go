package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/drivebay/drivebay"
)

// HealBody requests the repair of a volume.
type HealBody struct {
	DryRun     bool       `json:"dryRun,omitempty"`     // only report what would be done
	Fsck       bool       `json:"fsck,omitempty"`       // also repair the filesystem, which must not be mounted
	Options    []string   `json:"options,omitempty"`    // options that the volume was mounted with
	Passphrase Passphrase `json:"passphrase,omitempty"` // passphrase of an encrypted volume; not stored
}

// healVolume answers with the steps that were done. The volume itself has the state after them.
func (s *Server) healVolume(w http.ResponseWriter, r *http.Request) error {
	return work(s, w, r, func(ctx context.Context, engine Volumes, b HealBody) (any, error) {
		v, err := s.findVolume(r.PathValue("id"))
		if err = errors.Join(err, b.Passphrase.check()); err != nil {
			return nil, err
		}
		block := v.Mode != drivebay.ModeFS
		return engine.Heal(ctx, drivebay.HealRequest{Volume: v.ID, DryRun: b.DryRun, Fsck: b.Fsck, Block: &block, Options: b.Options, Secrets: b.Passphrase.secrets()})
	})
}
