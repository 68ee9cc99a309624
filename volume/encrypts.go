package volume

import (
	"context"
)

// Encrypts returns nil if volumes can be encrypted here, else the reason.
func (e nodeCalls) Encrypts(ctx context.Context) error { return e.luks.CanEncrypt(ctx) }
