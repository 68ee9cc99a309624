package sysfs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
)

// BeingRemoved reports whether the kernel is removing a device: then some attributes may be
// missing, and the rest would look like another drive. The kernel removes the file
// "uevent" before the other attributes, of the device and of its parent
// (drivers/base/core.c, device_del; seen with a USB disk on Linux 6.1, which still had
// its serial number but no model). In a recording no device is being removed.
func (s *Reader) BeingRemoved(path string) bool {
	return s.RemovesUevents && (s.Lacks(path+"/uevent") || s.Exists(path+"/device") && s.Lacks(path+"/device/uevent"))
}

// Lacks reports whether a file is absent; a file that cannot be read is present.
func (s *Reader) Lacks(name string) bool {
	_, err := s.ReadFile(name)
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, host.ErrGone)
}

// Size returns the sectors of a device; 0 where a recording has the drive without its size.
func (s *Reader) Size(path string) (uint64, bool) {
	b, err := s.ReadFile(path + "/size")
	s.note(path+"/size", err)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, s.Exists(path)
	}
	n, bad := strconv.ParseUint(Clean(string(b)), 10, 54) // 54 bits: times 512 still fits 64 bits
	return n, err == nil && bad == nil
}

// NvmeWWN returns a namespace's worldwide name. Kernels before 4.13 had one attribute
// for each kind: NGUID with dashes, EUI-64 in bytes.
func (s *Reader) NvmeWWN(path string) string {
	if wwid := s.Text(path + "/wwid"); wwid != "" {
		return UsableWWN(wwid)
	}
	bare := strings.NewReplacer(" ", "", "-", "")
	for _, wwn := range []string{"uuid." + s.Text(path+"/uuid"), "eui." + bare.Replace(s.Text(path+"/nguid")), "eui." + bare.Replace(s.Text(path+"/eui"))} {
		if wwn = UsableWWN(wwn); wwn != "" {
			return wwn
		}
	}
	return ""
}

// BlockDevices lists whole block devices. Incomplete recordings of sysfs may lack
// sys/block and still have sys/class/block, which holds partitions as well.
func (s *Reader) BlockDevices() ([]string, error) {
	s.BlockDir = "sys/block"
	names, err := s.ReadDir(s.BlockDir)
	if !errors.Is(err, fs.ErrNotExist) {
		return names, err
	}
	s.BlockDir = "sys/class/block"
	all, err := s.ReadDir(s.BlockDir)
	if err != nil {
		return nil, fmt.Errorf("neither sys/block nor %w", err)
	}
	for _, name := range all {
		if s.Exists(s.BlockDir + "/" + name + "/partition") {
			s.Partitions = append(s.Partitions, name)
		} else {
			names = append(names, name)
		}
	}
	return names, nil
}

// ReadMedium sets hard disk or solid-state drive, as the kernel reports it, and the
// rotation rate. USB bridges report "rotational" for any drive.
func (s *Reader) ReadMedium(path string, d *drivebay.Drive) {
	if page, _ := s.Read(path + "/device/vpd_pgb1"); len(page) >= 6 && page[1] == 0xb1 {
		if rate := int(binary.BigEndian.Uint16(page[4:])); rate >= 0x401 && rate < 0xffff { // SBC-4 table 260
			d.RPM = rate
		}
	}
	switch rotational := s.Text(path + "/queue/rotational"); {
	case rotational == "0":
		d.Type = drivebay.TypeSSD
	case d.RPM > 0, rotational == "1" && d.Transport != drivebay.TransportUSB:
		d.Type = drivebay.TypeHDD
	}
}
