package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// becomeSystemd waits for SIGUSR1. Then PID 1 is systemd, as on a machine of a user: most tests need
// no init system, and a machine with one takes longer to boot. The agent stays, as a process of PID 1
// that is no unit.
func becomeSystemd() {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1)
	<-asked
	err := syscall.Exec("/lib/systemd/systemd", []string{"systemd", "--unit=multi-user.target"}, os.Environ())
	fmt.Fprintln(os.Stderr, "LAB-FAILED: systemd:", err)
}
