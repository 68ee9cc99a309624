package drivebay

import (
	"errors"
	"strings"
	"testing"
)

// TestParseSize: every notation of a size, and what is refused with examples.
func TestParseSize(t *testing.T) {
	for text, want := range map[string]uint64{
		"0": 0, "1": 1, "4096": 4096, "512B": 512, " 7 ": 7,
		"10k": 10e3, "10kB": 10e3, "10K": 10e3, "10KB": 10e3, "10Ki": 10 << 10, "10KiB": 10 << 10,
		"10M": 10e6, "10MB": 10e6, "10Mi": 10 << 20, "10MiB": 10 << 20, "10mib": 10 << 20,
		"10G": 10e9, "10GB": 10e9, "10Gi": 10 << 30, "10GiB": 10 << 30, "10gi": 10 << 30, "10 GiB": 10 << 30,
		"10T": 10e12, "10TB": 10e12, "10Ti": 10 << 40, "10TiB": 10 << 40, "3.84TB": 3840e9, "1.5TiB": 3 << 39, "0.5Ti": 1 << 39,
		"2P": 2e15, "2PB": 2e15, "2Pi": 2 << 50, "2PiB": 2 << 50,
		"0.1GiB":           107374182,                                               // rounded down
		"9007199254740993": 9007199254740993, "9007199254740993B": 9007199254740993, // more than a float64 holds
		"18446744073709551615": 1<<64 - 1, "16383PiB": 16383 << 50,
	} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("%q is %d, %v; want %d", text, got, err, want)
		}
	}
	for text, why := range map[string]string{
		"": "is no size", "G": "is no size", "ten": "is no size", "-1G": "is no size", "+1G": "is no size", "1e9": "is no size", "0x10": "is no size", "1_000": "is no size", "1,5TiB": "is no size",
		"1.G": "is no size", ".5G": "is no size", "1 2G": "is no size", "1G 2": "is no size", "Inf": "is no size", "NaNGB": "is no size", "1G;": "is no size",
		"10GIBs": `unknown unit "GIBs"`, "10Gb/s": "is no size", "10XB": `unknown unit "XB"`, "5m": `unknown unit "m"`, "1Ei": `unknown unit "Ei"`,
		"1.5": "part of a byte", "0.5B": "part of a byte",
		"18446744073709551616": "larger than any drive", "16384PiB": "larger than any drive", "99999999999999999999TB": "larger than any drive",
		strings.Repeat("9", 100): "is no size",
	} {
		got, err := ParseSize(text)
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), "10GiB or 10Gi") {
			t.Errorf("%q is %d, %v; want it refused: %s", text, got, err, why)
		}
	}
}
