package agent

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// serveDrives waits until the kernel shows every serial number of the list and
// answers with serial number -> kernel name.
func serveDrives(w http.ResponseWriter, r *http.Request) {
	var want []string
	if err := json.NewDecoder(r.Body).Decode(&want); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	wait, _ := time.ParseDuration(r.FormValue("wait"))
	for end := time.Now().Add(wait); ; time.Sleep(10 * time.Millisecond) {
		found := serials()
		missing := ""
		for _, s := range want {
			if found[s] == "" {
				missing = s
			}
		}
		if missing == "" {
			json.NewEncoder(w).Encode(found)
			return
		}
		if time.Now().After(end) || r.Context().Err() != nil {
			http.Error(w, "the kernel shows no drive with serial number "+missing, http.StatusGatewayTimeout)
			return
		}
	}
}

// serials maps serial number to kernel name. The hidden paths of an NVMe drive
// (nvme0c0n1) are not listed, only its head.
func serials() map[string]string {
	out := map[string]string{}
	disks, _ := filepath.Glob("/sys/block/*")
	for _, disk := range disks {
		if hidden, _ := os.ReadFile(disk + "/hidden"); strings.TrimSpace(string(hidden)) == "1" {
			continue
		}
		if size, _ := os.ReadFile(disk + "/size"); strings.TrimSpace(string(size)) == "0" {
			continue
		}
		if s := serial(disk); s != "" {
			out[s] = filepath.Base(disk)
		}
	}
	return out
}

// serial reads where the kernel shows it: NVMe and virtio have a file, SCSI and
// ATA page 80h (SPC, unit serial number: four bytes of header), a USB bridge its
// own descriptor.
func serial(disk string) string {
	for _, f := range []string{"/serial", "/device/serial"} {
		if b, err := os.ReadFile(disk + f); err == nil {
			return strings.TrimSpace(string(b))
		}
	}
	if b, err := os.ReadFile(disk + "/device/vpd_pg80"); err == nil && len(b) > 4 {
		return strings.TrimSpace(string(b[4:]))
	}
	for dir, _ := filepath.EvalSymlinks(disk + "/device"); len(dir) > len("/sys/devices"); dir = filepath.Dir(dir) {
		if b, err := os.ReadFile(dir + "/serial"); err == nil {
			return strings.TrimSpace(string(b))
		}
	}
	return ""
}
