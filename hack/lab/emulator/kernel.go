package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	configfs = "/sys/kernel/config"
	target   = configfs + "/target"
)

// prepare loads the modules that the devices need, as far as they are missing, and
// mounts configfs if nobody has.
func prepare(ctx context.Context) error {
	said := loadModules(ctx)
	for _, module := range []string{"target_core_user", "tcm_loop"} {
		if !loaded(module) {
			return fmt.Errorf("kernel module %s is missing; modprobe said %q", module, said)
		}
	}
	if _, err := os.Stat(target); err == nil {
		return nil
	}
	if err := unix.Mount("configfs", configfs, "configfs", 0, ""); err != nil {
		return fmt.Errorf("mount configfs: %w", err)
	}
	if _, err := os.Stat(target); err != nil {
		return fmt.Errorf("the kernel's SCSI target: %w", err)
	}
	return nil
}

// loadModules returns what modprobe had to say; whether it matters shows later.
func loadModules(ctx context.Context) string {
	var missing []string
	for _, m := range []string{"target_core_user", "tcm_loop", "sd_mod", "sg", "ses"} {
		if !loaded(m) {
			missing = append(missing, m)
		}
	}
	if len(missing) == 0 {
		return ""
	}
	out, err := exec.CommandContext(ctx, "modprobe", append([]string{"-a"}, missing...)...).CombinedOutput()
	if err != nil {
		return strings.TrimSpace(fmt.Sprint(string(out), err))
	}
	return strings.TrimSpace(string(out))
}

func loaded(module string) bool {
	_, err := os.Stat("/sys/module/" + module)
	return err == nil
}
