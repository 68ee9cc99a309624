package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/drivebay/drivebay"
)

// HealBody asks for a volume to be put right.
type HealBody struct {
	DryRun     bool       `json:"dryRun,omitempty"`     // tell what would be done
	Fsck       bool       `json:"fsck,omitempty"`       // have the filesystem repaired, which nobody may have mounted
	Options    []string   `json:"options,omitempty"`    // that it was mounted with
	Passphrase Passphrase `json:"passphrase,omitempty"` // of an encrypted volume; it is kept nowhere
}

// healVolume answers with what was done. How the volume is then, the volume says.
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
