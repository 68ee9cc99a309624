package main

import (
	"fmt"
	"io"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/cmd/drivebay/internal/secretfile"
	"github.com/drivebay/drivebay/internal/api"
	"github.com/spf13/cobra"
)

// passphraseFlag names a file, so that the passphrase itself is in no process list and
// in no shell history.
type passphraseFlag struct{ file string }

const passphraseFile = "passphrase-file"

func newPassphraseFlag(cmd *cobra.Command, help string) *passphraseFlag {
	f := new(passphraseFlag)
	cmd.Flags().StringVar(&f.file, passphraseFile, "", help+", used byte for byte; - reads standard input")
	return f
}

// class returns the parameters of the class. A passphrase selects LUKS2; encryption
// without a passphrase is refused.
func (f *passphraseFlag) class(c *classFlags) (map[string]string, error) {
	parameters, err := c.parameters()
	switch encrypted := parameters[drivebay.ParameterEncryption] != ""; {
	case err != nil:
		return nil, err
	case encrypted && f.file == "":
		return nil, usage("--%s is required for an encrypted volume", passphraseFile)
	case f.file != "":
		parameters[drivebay.ParameterEncryption] = drivebay.EncryptionLUKS2
	}
	return parameters, nil
}

func (f *passphraseFlag) read(stdin io.Reader) (api.Passphrase, error) {
	if f.file == "" {
		return "", nil
	}
	b, err := secretfile.Bytes(f.file, stdin)
	if err == nil && len(b) == 0 {
		err = fmt.Errorf("%w: the passphrase is empty", drivebay.ErrInvalid)
	}
	if err != nil {
		return "", fmt.Errorf("--%s %s: %w", passphraseFile, f.file, err)
	}
	return api.Passphrase(b), nil
}
