// Command guest is what a lab machine runs besides Debian's own files. The
// kernel starts it from the initial file system as PID 1; it loads the modules
// that reach the root disk, moves there, brings up what a drive manager needs to
// find (udev, configfs, cgroups) and then serves the lab's requests.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// self is where the program lies once the root file system is there.
const self = "/usr/local/sbin/lab-guest"

func main() {
	stage, role := func() error { return enterRoot() }, ""
	if len(os.Args) > 1 {
		role = os.Args[1]
	}
	switch role {
	case "init":
		stage = bringUp
	case "agent":
		stage = serve
	}
	if err := stage(); err != nil {
		fmt.Fprintln(os.Stderr, "LAB-FAILED:", err)
		if os.Getpid() == 1 {
			time.Sleep(100 * time.Millisecond) // let the console take the line
			syscall.Reboot(syscall.LINUX_REBOOT_CMD_POWER_OFF)
		}
		os.Exit(1)
	}
}

type mountPoint struct{ source, target, kind, data string }

func mountAll(points []mountPoint) error {
	for _, m := range points {
		if err := os.MkdirAll(m.target, 0o755); err != nil {
			return err
		}
		if err := syscall.Mount(m.source, m.target, m.kind, 0, m.data); err != nil && err != syscall.EBUSY {
			return fmt.Errorf("mount %s on %s: %w", m.kind, m.target, err)
		}
	}
	return nil
}

// bringUp is PID 1 on the root file system: it never returns while all is well.
func bringUp() error {
	os.Clearenv()
	for k, v := range map[string]string{"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME": "/root", "TERM": "dumb", "LANG": "C.UTF-8", "LAB_GUEST": "1"} {
		os.Setenv(k, v)
	}
	if err := syscall.Sethostname([]byte("lab")); err != nil {
		return err
	}
	if err := command("modprobe", "-a", "configfs", "virtio_console", "dm-mod", "loop", "sd_mod", "sg"); err != nil {
		return err
	}
	err := mountAll([]mountPoint{
		{"devpts", "/dev/pts", "devpts", "ptmxmode=0666"}, {"shm", "/dev/shm", "tmpfs", ""},
		{"run", "/run", "tmpfs", ""}, {"tmp", "/tmp", "tmpfs", ""},
		{"configfs", "/sys/kernel/config", "configfs", ""}, {"debugfs", "/sys/kernel/debug", "debugfs", ""},
		{"cgroup2", "/sys/fs/cgroup", "cgroup2", ""},
	})
	if err != nil {
		return err
	}
	for _, dir := range []string{"/run/lock/lvm", "/run/lvm"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	// The console is for what went wrong, the log is in /dev/kmsg.
	if err := os.WriteFile("/proc/sys/kernel/printk", []byte("1"), 0o644); err != nil {
		return err
	}
	for _, argv := range [][]string{
		{"ip", "link", "set", "lo", "up"},
		{"/lib/systemd/systemd-udevd", "--daemon"},
		{"udevadm", "trigger", "--action=add"},
		{"udevadm", "settle", "-t", "30"},
	} {
		if err := command(argv...); err != nil {
			return err
		}
	}
	return supervise()
}

func command(argv ...string) error {
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w: %s", argv, err, out)
	}
	return nil
}

// supervise keeps the agent running and buries what it leaves: PID 1 is the
// parent of every orphan. It runs nothing itself, so waiting for any child is safe.
func supervise() error {
	go becomeSystemd()
	attr := &syscall.ProcAttr{Env: os.Environ(), Dir: "/", Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true}}
	for {
		agent, err := syscall.ForkExec(self, []string{self, "agent"}, attr)
		if err != nil {
			return fmt.Errorf("start the agent: %w", err)
		}
		for pid := 0; pid != agent; {
			if pid, err = syscall.Wait4(-1, nil, 0, nil); err != nil && err != syscall.EINTR {
				return fmt.Errorf("wait: %w", err)
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
}
