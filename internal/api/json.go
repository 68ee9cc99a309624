package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/drivebay/drivebay"
)

// strict decodes exactly one JSON value and rejects unknown fields.
func strict(body []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return fmt.Errorf("body: %w: %w", drivebay.ErrInvalid, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("body: %w: more than one JSON value", drivebay.ErrInvalid)
	}
	return nil
}
