// Package secretfile reads secrets from files, so that they are in no process list and in no shell history.
package secretfile

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"github.com/drivebay/drivebay"
)

// maxBytes is larger than any secret that is accepted.
const maxBytes = 64 << 10

// Bytes returns what a file holds, byte for byte; - is standard input. The file may be a pipe.
func Bytes(file string, stdin io.Reader) ([]byte, error) {
	in := stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	return read(in)
}

// Secret returns the secret in a file without the white space around it; - is standard input. It refuses a file that is
// not regular, and one that users other than its owner can read.
func Secret(file string, stdin io.Reader) (string, error) {
	load := private
	if file == "-" {
		load = func(file string) ([]byte, error) { return Bytes(file, stdin) }
	}
	b, err := load(file)
	if err != nil {
		return "", err
	}
	if b = bytes.TrimSpace(b); len(b) == 0 {
		return "", fmt.Errorf("%s: %w: it is empty", file, drivebay.ErrInvalid)
	}
	return string(b), nil
}

// private reads a regular file. The first look keeps it from waiting for the other end of a pipe, the second one is at
// the file that is read.
func private(file string) ([]byte, error) {
	if st, err := os.Stat(file); err != nil {
		return nil, err
	} else if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w: it is not a regular file", file, drivebay.ErrInvalid)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	switch st, err := f.Stat(); {
	case err != nil:
		return nil, err
	case !st.Mode().IsRegular():
		return nil, fmt.Errorf("%s: %w: it is not a regular file", file, drivebay.ErrInvalid)
	case st.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("%s: %w: users other than its owner may read or change it (mode %#o): `chmod 600 %s`", file, drivebay.ErrInvalid, st.Mode().Perm(), file)
	}
	return read(f)
}

func read(in io.Reader) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(in, maxBytes+1))
	if err == nil && len(b) > maxBytes {
		err = fmt.Errorf("%w: it is larger than %d bytes", drivebay.ErrInvalid, maxBytes)
	}
	return b, err
}
