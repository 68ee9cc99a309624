// Command witness asks a drive with github.com/anatol/smart.go and prints what it says as JSON: the third
// witness of the lab, beside smartctl and the daemon. The arguments are ata, nvme or scsi, and the device.
package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	smart "github.com/anatol/smart.go"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "witness:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	ask := map[string]func(string) (map[string]string, error){"ata": ata, "nvme": nvme, "scsi": scsi}
	if len(args) != 2 || ask[args[0]] == nil {
		return fmt.Errorf("usage: witness ata|nvme|scsi DEVICE")
	}
	facts, err := ask[args[0]](args[1])
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(facts)
}

func trimmed(s string) string { return strings.Trim(s, " \x00") }

func ata(dev string) (map[string]string, error) {
	d, err := smart.OpenSata(dev)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	id, err := d.Identify()
	if err != nil {
		return nil, err
	}
	if trimmed(id.ModelNumber()) == "" {
		return nil, fmt.Errorf("%s: the identity is empty", dev)
	}
	facts := map[string]string{"model": trimmed(id.ModelNumber()), "serial": trimmed(id.SerialNumber()), "firmware": trimmed(id.FirmwareRevision())}
	if _, size, _, _, _ := id.Capacity(); size != 0 {
		facts["size"] = fmt.Sprint(size)
	}
	page, err := d.ReadSMARTData()
	if err != nil {
		return nil, err
	}
	limits, err := d.ReadSMARTThresholds()
	if err != nil {
		return nil, err
	}
	for id, a := range page.Attrs {
		at := fmt.Sprintf("attribute %d: ", id)
		facts[at+"value"], facts[at+"worst"] = fmt.Sprint(a.Current), fmt.Sprint(a.Worst)
		facts[at+"raw"] = fmt.Sprint(binary.LittleEndian.Uint64(append(a.VendorBytes[:], 0, 0)))
		facts[at+"prefail"] = fmt.Sprint(a.Flags&smart.AtaAttributeFlagPrefailure != 0)
		if limit, ok := limits.Thresholds[id]; ok {
			facts[at+"threshold"] = fmt.Sprint(limit)
		}
	}
	return facts, nil
}

// nvme refuses a log without a temperature: smart.go ignores the status of a command, and a failed one
// leaves zeros.
func nvme(dev string) (map[string]string, error) {
	d, err := smart.OpenNVMe(dev)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	id, _, err := d.Identify()
	if err != nil {
		return nil, err
	}
	log, err := d.ReadSMART()
	if err != nil {
		return nil, err
	}
	if log.Temperature == 0 {
		return nil, fmt.Errorf("%s: the log is empty", dev)
	}
	facts := map[string]string{"model": trimmed(id.ModelNumber()), "serial": trimmed(id.SerialNumber()), "firmware": trimmed(id.FirmwareRev()),
		"critical warning": fmt.Sprint(log.CritWarning), "temperature": fmt.Sprint(log.Temperature),
		"spare": fmt.Sprint(log.AvailSpare), "spare threshold": fmt.Sprint(log.SpareThresh), "used": fmt.Sprint(log.PercentUsed)}
	for name, wide := range map[string]smart.Uint128{"read": log.DataUnitsRead, "written": log.DataUnitsWritten, "power cycles": log.PowerCycles,
		"power-on hours": log.PowerOnHours, "unsafe shutdowns": log.UnsafeShutdowns, "media errors": log.MediaErrors} {
		if wide.Val[1] == 0 {
			facts[name] = fmt.Sprint(wide.Val[0])
		}
	}
	return facts, nil
}

// scsi leaves out the size from 2 TiB on: READ CAPACITY(10) has 32 bits for it.
func scsi(dev string) (map[string]string, error) {
	d, err := smart.OpenScsi(dev)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	id, err := d.Inquiry()
	if err != nil {
		return nil, err
	}
	facts := map[string]string{"vendor": trimmed(string(id.VendorIdent[:])), "model": trimmed(string(id.ProductIdent[:])), "firmware": trimmed(string(id.ProductRev[:]))}
	if serial, err := d.SerialNumber(); err == nil && trimmed(serial) != "" {
		facts["serial"] = trimmed(serial)
	}
	if size, err := d.Capacity(); err == nil && size != 0 {
		facts["size"] = fmt.Sprint(size)
	}
	return facts, nil
}
