package drbd

import (
	"errors"
	"fmt"
	"strings"
)

// Errors of requests, by the kernel's return code. errors.Is finds them.
var (
	// ErrUnavailable: the kernel has no DRBD, or its module is not loaded.
	ErrUnavailable = errors.New("the kernel module drbd is not loaded")
	// ErrOtherVersion: the kernel's DRBD is not 8.4, and has no device of ours.
	ErrOtherVersion = errors.New("only version 8.4 of DRBD is supported")
	// ErrTwoPrimaries: the peer is primary.
	ErrTwoPrimaries = errors.New("the peer is primary")
	// ErrNotUpToDate: no side has data that DRBD knows to be current.
	ErrNotUpToDate = errors.New("no up-to-date data")
	// ErrInUse: a program or a file system has the device open.
	ErrInUse = errors.New("the device is in use")
	// ErrResync: the request has to wait for the end of a resynchronization.
	ErrResync = errors.New("a resynchronization runs")
	// ErrNoPrimary: both sides are secondary, and connected.
	ErrNoPrimary = errors.New("no side is primary")
	// ErrNotFound: the kernel has no such minor, resource or connection.
	ErrNotFound = errors.New("not found")
	// ErrUnclean: the disk was attached since its activity log was applied (ApplyActivityLog).
	ErrUnclean = errors.New("the activity log has to be applied first")
	// ErrAddressInUse: a connection of this or of another resource has the address. Each connection needs a local and a
	// remote port of its own (drbd_adm_connect).
	ErrAddressInUse = errors.New("address in use")
)

// CodeError is a request that the kernel refused.
type CodeError struct {
	Operation string
	// Code is of enum drbd_ret_code (above 100) or enum drbd_state_rv (negative).
	Code int32
	Info []string
}

func (e *CodeError) Error() string {
	why := codes[e.Code].text
	if why == "" {
		why = "unexpected answer"
	}
	s := fmt.Sprintf("drbd: %s: %s (code %d)", e.Operation, why, e.Code)
	if len(e.Info) > 0 {
		s += ": " + strings.Join(e.Info, "; ")
	}
	return s
}

func (e *CodeError) Unwrap() error { return codes[e.Code].class }

// codes are those that a request of this package can get: enum drbd_ret_code and enum drbd_state_rv of
// include/linux/drbd.h.
var codes = map[int32]struct {
	text  string
	class error
}{
	102: {"a connection has the local address", ErrAddressInUse},
	103: {"a connection has the peer address", ErrAddressInUse},
	104: {"cannot open the backing device", nil},
	105: {"cannot open the metadata device", nil},
	107: {"the backing device is not a block device", nil},
	108: {"the metadata device is not a block device", nil},
	111: {"the backing device is too small", nil},
	112: {"the metadata device is too small", nil},
	114: {"the backing device is in use", ErrInUse},
	115: {"the metadata device is in use", ErrInUse},
	116: {"index of the metadata is invalid", nil},
	118: {"the metadata device failed", nil},
	119: {"no valid metadata", ErrNoMetadata},
	120: {"the kernel has no such authentication algorithm", nil},
	121: {"not a keyed hash algorithm", nil},
	122: {"out of memory", nil},
	123: {"cannot discard the local data: the device is primary", nil},
	124: {"a disk is attached already", nil},
	125: {"connected already", nil},
	126: {"a required attribute is missing or unknown to the kernel", nil},
	127: {"no such minor", ErrNotFound},
	129: {"interrupted", nil},
	130: {"cannot resize during a resynchronization", ErrResync},
	131: {"one side has to be primary to resize", ErrNoPrimary},
	138: {"no disk is attached", nil},
	139: {"needs protocol C", nil},
	140: {"out of memory for the bitmap", nil},
	150: {"the local data are not current", ErrNotUpToDate},
	152: {"permission denied: needs CAP_SYS_ADMIN", nil},
	158: {"no such resource", ErrNotFound},
	159: {"the resource is in use", ErrInUse},
	160: {"the minor is configured", ErrInUse},
	161: {"the minor or volume exists", nil},
	162: {"invalid request", nil},
	165: {"the activity log of the metadata is not applied", ErrUnclean},
	170: {"the disk is smaller than before", nil},

	0:   {"unknown error", nil},
	-1:  {"refusing two primaries", ErrTwoPrimaries},
	-2:  {"needs up-to-date data", ErrNotUpToDate},
	-4:  {"no local disk", nil},
	-5:  {"no disk on the peer", nil},
	-6:  {"refusing to be outdated while connected", nil},
	-7:  {"refusing to be primary while the peer is not outdated", nil},
	-8:  {"a resynchronization runs", nil},
	-9:  {"stand-alone already", nil},
	-10: {"the peer refused", nil},
	-11: {"the device has no disk", nil},
	-12: {"the device is held open", ErrInUse},
	-13: {"no network configuration", nil},
	-15: {"needs a connection", nil},
	-16: {"the disk is worse than outdated", nil},
	-18: {"in a transient state, retry", nil},
	-19: {"another state change runs, retry", nil},
	-20: {"another volume of the peer is primary", ErrTwoPrimaries},
	-21: {"needs a connection to be outdated", nil},
}

// succeeded holds of NO_ERROR and of the positive values of enum drbd_state_rv (SS_SUCCESS,
// SS_NOTHING_TO_DO, SS_CW_SUCCESS, SS_CW_NO_NEED).
func succeeded(code int32) bool { return code == 101 || code >= 1 && code <= 4 }
