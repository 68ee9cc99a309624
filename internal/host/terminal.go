package host

import (
	"os"

	"golang.org/x/sys/unix"
)

// TerminalColumns returns how many columns the terminal has that a file is open on (TIOCGWINSZ,
// ioctl_tty(2)); 0 if the file is no terminal, or if the terminal does not know its size.
func TerminalColumns(f *os.File) int {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}
