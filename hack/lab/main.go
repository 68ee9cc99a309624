// Command lab starts emulated machines with drives of every kind and breaks
// them: see docs/lab.md.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/drivebay/drivebay/hack/lab/lab"
	"github.com/drivebay/drivebay/hack/lab/machine"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	began := time.Now()
	lap := func(s string) { fmt.Printf("%6.2f %s\n", time.Since(began).Seconds(), s) }
	opt, err := lab.Setup(ctx, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
	lap("setup")
	for range 3 {
		began = time.Now()
		m, err := machine.Start(ctx, opt, machine.Spec{Shares: map[string]string{"src": "/work/main"}, Drives: []machine.Drive{
			{ID: "nvme0", Kind: machine.NVMe, Serial: "NV0"}, {ID: "nvme1", Kind: machine.NVMe, Serial: "NV1"},
			{ID: "sd0", Kind: machine.SCSI, Serial: "SD0"}, {ID: "usb0", Kind: machine.USB, Serial: "USB0"}, {ID: "vd0", Kind: machine.Virtio, Serial: "VD0"}}})
		if err != nil {
			fmt.Fprintln(os.Stderr, "lab:", err)
			os.Exit(1)
		}
		lap("up")
		out, err := m.Guest.Shell(ctx, "lsblk -o NAME,SERIAL,SIZE,TRAN,MODEL; ls /share/src; cat /proc/uptime; free -m; ls /sys/bus/pci/slots; dmesg | tail -5")
		fmt.Println(out, err)
		lap("shell")
		m.Close()
		lap("closed")
	}
}
