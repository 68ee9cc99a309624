package hostsim

import (
	"strings"

	"github.com/drivebay/drivebay/internal/hostsim/internal/sysfs"
)

// putFirmware adds what the firmware of the machine says about it (drivers/firmware/dmi-id.c). The
// vendor left placeholders in some fields, as most do.
func (m *Machine) putFirmware() {
	const id = "sys/devices/virtual/dmi/id"
	for name, text := range map[string]string{
		"sys_vendor": "ACME", "product_name": "S2400", "product_version": "To Be Filled By O.E.M.", "product_sku": "Default string", "product_serial": "SIM-" + strings.ToUpper(m.name),
		"chassis_type": "23", "chassis_vendor": "ACME", "chassis_serial": "SIM-" + strings.ToUpper(m.name), "chassis_asset_tag": "No Asset Tag",
		"board_vendor": "ACME", "board_name": "S2400-MB", "board_version": "A02", "board_serial": "Not Specified",
		"bios_vendor": "ACME", "bios_version": "1.8.2", "bios_date": "03/14/2024",
	} {
		m.kernel.Tree.Put(id+"/"+name, &sysfs.Node{Text: text + "\n", Keep: true})
	}
	m.kernel.Tree.Put("sys/class/dmi/id", &sysfs.Node{Link: sysfs.Relative("sys/class/dmi/id", id), Keep: true})
}
