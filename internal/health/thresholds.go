package health

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/drivebay/drivebay"
)

// Thresholds holds the limits of the rules. The tags of a field are its reference: the key in the
// configuration, and its meaning.
type Thresholds struct {
	HDDReallocatedSuspect uint64 `yaml:"hddReallocatedSuspect" json:"hddReallocatedSuspect" doc:"reallocated sectors of a hard disk above which it is SUSPECT"`
	HDDReallocatedBad     uint64 `yaml:"hddReallocatedBad" json:"hddReallocatedBad" doc:"reallocated sectors of a hard disk above which it is BAD"`
	HDDReallocatedGrowth  uint64 `yaml:"hddReallocatedGrowth" json:"hddReallocatedGrowth" doc:"newly reallocated sectors within 7 days that make a hard disk BAD"`
	HDDUncorrectSuspect   uint64 `yaml:"hddUncorrectSuspect" json:"hddUncorrectSuspect" doc:"uncorrectable errors that a hard disk reported"`
	HDDUncorrectBad       uint64 `yaml:"hddUncorrectBad" json:"hddUncorrectBad" doc:"the same, for BAD"`
	HDDPendingSure        uint64 `yaml:"hddPendingSure" json:"hddPendingSure" doc:"pending sectors of a hard disk that make it SUSPECT at once; fewer must occur in two readings, or together with another sign of damage"`
	HDDPendingBad         uint64 `yaml:"hddPendingBad" json:"hddPendingBad" doc:"pending sectors of a hard disk that make it BAD"`
	HDDSpinRetry          uint64 `yaml:"hddSpinRetry" json:"hddSpinRetry" doc:"failed first attempts of a hard disk to spin up"`
	HDDEndToEnd           uint64 `yaml:"hddEndToEnd" json:"hddEndToEnd" doc:"errors between the host interface and the medium of a hard disk: data changed inside the drive"`
	LinkErrorsGrowth      uint64 `yaml:"linkErrorsGrowth" json:"linkErrorsGrowth" doc:"new transmission errors or command timeouts within 24 h"`

	SSDRetired      uint64 `yaml:"ssdRetired" json:"ssdRetired" doc:"retired blocks of a solid-state drive"`
	SSDUncorrect    uint64 `yaml:"ssdUncorrect" json:"ssdUncorrect" doc:"uncorrectable errors or pending sectors of a solid-state drive"`
	WearLeft        uint64 `yaml:"wearLeft" json:"wearLeft" doc:"remaining life in a wear attribute, in percent"`
	WearUsed        uint64 `yaml:"wearUsed" json:"wearUsed" doc:"rated endurance used, in percent"`
	WearOutDays     uint64 `yaml:"wearOutDays" json:"wearOutDays" doc:"days until the endurance runs out at the present rate"`
	NVMeSpareMargin uint64 `yaml:"nvmeSpareMargin" json:"nvmeSpareMargin" doc:"percentage points above the drive's own spare threshold; an available spare below that is SUSPECT"`

	NVMeMediaSuspect uint64 `yaml:"nvmeMediaSuspect" json:"nvmeMediaSuspect" doc:"media and data integrity errors of an NVMe drive"`
	NVMeMediaBad     uint64 `yaml:"nvmeMediaBad" json:"nvmeMediaBad" doc:"the same, for BAD"`

	SCSIGrownSuspect       uint64 `yaml:"scsiGrownSuspect" json:"scsiGrownSuspect" doc:"grown defects of a SCSI or SAS drive"`
	SCSIGrownBad           uint64 `yaml:"scsiGrownBad" json:"scsiGrownBad" doc:"the same, for BAD"`
	SCSIGrownGrowth        uint64 `yaml:"scsiGrownGrowth" json:"scsiGrownGrowth" doc:"new grown defects within 7 days that make it BAD"`
	SCSIUncorrectedSuspect uint64 `yaml:"scsiUncorrectedSuspect" json:"scsiUncorrectedSuspect" doc:"reads, writes and verifies that a SCSI or SAS drive could not correct"`
	SCSIUncorrectedBad     uint64 `yaml:"scsiUncorrectedBad" json:"scsiUncorrectedBad" doc:"the same, for BAD"`
	SCSIPendingSuspect     uint64 `yaml:"scsiPendingSuspect" json:"scsiPendingSuspect" doc:"pending defects of a SCSI or SAS drive"`
	SCSIPendingBad         uint64 `yaml:"scsiPendingBad" json:"scsiPendingBad" doc:"the same, for BAD"`

	KernelMediaSuspect uint64        `yaml:"kernelMediaSuspect" json:"kernelMediaSuspect" doc:"distinct sectors that the kernel could not read or write in 24 h"`
	KernelMediaBad     uint64        `yaml:"kernelMediaBad" json:"kernelMediaBad" doc:"the same, for BAD"`
	KernelOther        uint64        `yaml:"kernelOther" json:"kernelOther" doc:"other errors of the drive in the kernel log in 24 h"`
	KernelIOErrors     uint64        `yaml:"kernelIOErrors" json:"kernelIOErrors" doc:"growth of the kernel's error counter in 1 h"`
	KernelTimeouts     uint64        `yaml:"kernelTimeouts" json:"kernelTimeouts" doc:"growth of the kernel's timeout counter in 1 h"`
	KernelResets       uint64        `yaml:"kernelResets" json:"kernelResets" doc:"resets of the drive or its link in 1 h"`
	DriveReturns       uint64        `yaml:"driveReturns" json:"driveReturns" doc:"times in 24 h that a drive left the machine, or was given up by the kernel, and was back"`
	FilesystemErrors   uint64        `yaml:"filesystemErrors" json:"filesystemErrors" doc:"errors that a filesystem on the drive has counted"`
	FrozenSuspect      time.Duration `yaml:"frozenSuspect" json:"frozenSuspect" doc:"how long requests wait while none completes"`
	FrozenBad          time.Duration `yaml:"frozenBad" json:"frozenBad" doc:"the same, for BAD"`
	SilentSuspect      time.Duration `yaml:"silentSuspect" json:"silentSuspect" doc:"how long the drive does not answer a request of drivebay"`
	SilentBad          time.Duration `yaml:"silentBad" json:"silentBad" doc:"the same, for BAD"`

	StaleAfter time.Duration `yaml:"staleAfter" json:"staleAfter" doc:"age of the last reading from which on a drive is UNKNOWN; three times poll.evidence"`
	ClearAfter time.Duration `yaml:"clearAfter" json:"clearAfter" doc:"how long the cause of a finding must be gone before the finding is cleared"`
	ClearQuick time.Duration `yaml:"clearQuick" json:"clearQuick" doc:"the same for temporary causes: temperature, resets, a drive that is back"`
}

// Default returns the thresholds that the rules were calibrated with.
func Default() Thresholds {
	return Thresholds{
		HDDReallocatedSuspect: 16, HDDReallocatedBad: 1100, HDDReallocatedGrowth: 50,
		HDDUncorrectSuspect: 1, HDDUncorrectBad: 120,
		HDDPendingSure: 8, HDDPendingBad: 100,
		HDDSpinRetry: 1, HDDEndToEnd: 1, LinkErrorsGrowth: 10,
		SSDRetired: 50, SSDUncorrect: 10, WearLeft: 10, WearUsed: 90, WearOutDays: 90,
		NVMeSpareMargin: 10, NVMeMediaSuspect: 1, NVMeMediaBad: 100,
		SCSIGrownSuspect: 10, SCSIGrownBad: 1000, SCSIGrownGrowth: 100,
		SCSIUncorrectedSuspect: 1, SCSIUncorrectedBad: 10, SCSIPendingSuspect: 1, SCSIPendingBad: 50,
		KernelMediaSuspect: 1, KernelMediaBad: 10, KernelOther: 10, KernelIOErrors: 20, KernelTimeouts: 3, KernelResets: 3, DriveReturns: 5,
		FilesystemErrors: 1, FrozenSuspect: 5 * time.Second, FrozenBad: time.Minute,
		SilentSuspect: 20 * time.Second, SilentBad: 2 * time.Minute,
		StaleAfter: 30 * time.Minute, ClearAfter: 24 * time.Hour, ClearQuick: 10 * time.Minute,
	}
}

// pairs holds pairs of keys: the second value must not be below the first.
var pairs = [][2]string{
	{"hddReallocatedSuspect", "hddReallocatedBad"}, {"hddUncorrectSuspect", "hddUncorrectBad"}, {"hddPendingSure", "hddPendingBad"},
	{"nvmeMediaSuspect", "nvmeMediaBad"}, {"scsiGrownSuspect", "scsiGrownBad"}, {"scsiUncorrectedSuspect", "scsiUncorrectedBad"},
	{"scsiPendingSuspect", "scsiPendingBad"}, {"kernelMediaSuspect", "kernelMediaBad"}, {"frozenSuspect", "frozenBad"},
	{"silentSuspect", "silentBad"}, {"clearQuick", "clearAfter"},
}

// percents holds the keys of percentages.
var percents = []string{"wearLeft", "wearUsed", "nvmeSpareMargin"}

// Validate returns all errors, not only the first.
func (th Thresholds) Validate() error {
	var errs []error
	values := map[string]int64{}
	for _, f := range th.fields() {
		values[f.key] = f.number
		if f.number < 1 && f.key != "hddReallocatedSuspect" {
			errs = append(errs, fmt.Errorf("health threshold %s: %w: is %s, must be above 0", f.key, drivebay.ErrInvalid, f.text))
		}
	}
	for _, p := range pairs {
		if values[p[1]] < values[p[0]] {
			errs = append(errs, fmt.Errorf("health threshold %s: %w: is below %s", p[1], drivebay.ErrInvalid, p[0]))
		}
	}
	for _, key := range percents {
		if values[key] > 100 {
			errs = append(errs, fmt.Errorf("health threshold %s: %w: is %d, must be a percentage, at most 100", key, drivebay.ErrInvalid, values[key]))
		}
	}
	return errors.Join(errs...)
}

// field is one threshold as Markdown and Validate use it.
type field struct {
	key, text, doc string
	number         int64
}

func (th Thresholds) fields() []field {
	v := reflect.ValueOf(th)
	out := make([]field, v.NumField())
	for i := range out {
		tag := v.Type().Field(i).Tag
		f := field{key: tag.Get("yaml"), doc: tag.Get("doc")}
		if d, ok := v.Field(i).Interface().(time.Duration); ok {
			f.number, f.text = int64(d), span(d)
		} else {
			f.number = int64(min(v.Field(i).Uint(), 1<<62))
			f.text = fmt.Sprint(v.Field(i).Uint())
		}
		out[i] = f
	}
	return out
}
