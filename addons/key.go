package addons

import (
	"cmp"
	"context"
	"fmt"

	"github.com/csi-addons/spec/lib/go/encryptionkeyrotation"
	"github.com/drivebay/drivebay"
)

type keyServer struct {
	encryptionkeyrotation.UnimplementedEncryptionKeyRotationControllerServer
	*Server
}

// SecretNewPassphrase is the key of the new passphrase among the secrets of a call
// without an encryption_key: the sidecar of kubernetes-csi-addons v0.14.0 sends only the
// secret with which volumes are staged
// (internal/sidecar/service/encryptionkeyrotation.go).
const SecretNewPassphrase = "newPassphrase"

func (k *keyServer) EncryptionKeyRotate(ctx context.Context, req *encryptionkeyrotation.EncryptionKeyRotateRequest) (*encryptionkeyrotation.EncryptionKeyRotateResponse, error) {
	if err := checkContext("parameters", req.Parameters); err != nil {
		return nil, err
	}
	if _, err := k.usable(req); err != nil {
		return nil, err
	}
	next := cmp.Or(req.EncryptionKey, req.Secrets[SecretNewPassphrase])
	if next == "" {
		return nil, fmt.Errorf("encryption_key: %w: required, or the secret %q", drivebay.ErrInvalid, SecretNewPassphrase)
	}
	return &encryptionkeyrotation.EncryptionKeyRotateResponse{}, k.opt.Volumes.RotateKey(ctx, drivebay.KeyRequest{
		Volume: req.VolumeId, Path: req.VolumePath, Secrets: req.Secrets, New: drivebay.Secrets{drivebay.SecretPassphrase: next}})
}
