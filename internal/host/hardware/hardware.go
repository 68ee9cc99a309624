// Package hardware reads which machine the daemon runs on: what its firmware says about the product, the
// chassis, the board and the BIOS. It reads by ghw, once, when the daemon starts.
package hardware

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/host"
	"github.com/jaypipes/ghw"
)

// rooted is a real machine: its root is a folder of this one.
type rooted interface{ Root() string }

// Read returns what the firmware of a machine says about it, and nil if it says nothing. ghw opens files
// without a limit and follows links out of its root, so it reads the root of a real machine only; of any
// other machine it reads a copy of the files that it needs.
func Read(m host.Machine) (*drivebay.Hardware, error) {
	if r, ok := m.(rooted); ok {
		return below(r.Root())
	}
	dir, err := os.MkdirTemp("", "drivebay-firmware-")
	if err != nil {
		return nil, fmt.Errorf("identity of the machine: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := copyInto(dir, m); err != nil {
		return nil, fmt.Errorf("identity of the machine: %w", err)
	}
	return below(dir)
}

// sources are the files that ghw reads: SMBIOS as the kernel shows it (drivers/firmware/dmi-id.c), and the
// device tree of machines that have no SMBIOS.
var sources = map[string][]string{
	"sys/class/dmi/id": {
		"sys_vendor", "product_name", "product_version", "product_sku", "product_serial",
		"chassis_type", "chassis_vendor", "chassis_serial", "chassis_asset_tag",
		"board_vendor", "board_name", "board_version", "board_serial",
		"bios_vendor", "bios_version", "bios_date",
	},
	"sys/firmware/devicetree/base":        {"model", "compatible", "serial-number", "chassis-type"},
	"sys/firmware/devicetree/base/chosen": {"u-boot,version"},
}

// maxSource bounds a copied file: an attribute of sysfs has one page.
const maxSource = 4096

// copyInto copies the files of a machine that exist and are small.
func copyInto(dir string, m host.Files) error {
	for folder, names := range sources {
		for _, name := range names {
			b, err := m.ReadFile(folder + "/" + name)
			if err != nil || len(b) > maxSource {
				continue // unreadable is unknown
			}
			if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(dir, folder, name), b, 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}

// below reads the machine whose root is a folder. ghw prints a warning to stderr for each file that it
// cannot read, and takes its root and more from variables GHW_*: the options win over both.
func below(root string) (*drivebay.Hardware, error) {
	at, quiet := ghw.WithChroot(root), ghw.WithLogger(slog.New(slog.DiscardHandler))
	product, err := ghw.Product(at, quiet)
	if err != nil {
		return nil, fmt.Errorf("identity of the machine: product: %w", err)
	}
	chassis, err := ghw.Chassis(at, quiet)
	if err != nil {
		return nil, fmt.Errorf("identity of the machine: chassis: %w", err)
	}
	board, err := ghw.Baseboard(at, quiet)
	if err != nil {
		return nil, fmt.Errorf("identity of the machine: board: %w", err)
	}
	bios, err := ghw.BIOS(at, quiet)
	if err != nil {
		return nil, fmt.Errorf("identity of the machine: BIOS: %w", err)
	}
	h := drivebay.Hardware{
		Vendor: said(product.Vendor), Product: said(product.Name), Version: said(product.Version), SKU: said(product.SKU),
		Serial:  cmp.Or(said(product.SerialNumber), said(chassis.SerialNumber)),
		Chassis: drivebay.Chassis{Type: said(chassis.TypeDescription), Vendor: said(chassis.Vendor), Serial: said(chassis.SerialNumber), AssetTag: said(chassis.AssetTag)},
		Board:   drivebay.Board{Vendor: said(board.Vendor), Product: said(board.Product), Version: said(board.Version), Serial: said(board.SerialNumber)},
		BIOS:    drivebay.BIOS{Vendor: said(bios.Vendor), Version: said(bios.Version), Date: said(bios.Date)},
	}
	if h == (drivebay.Hardware{}) || virtual(&h) {
		return nil, nil
	}
	return &h, nil
}
