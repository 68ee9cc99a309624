package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/drivebay/drivebay/hack/lab/agent"
)

const portName = "lab.agent" // as the machine's description names the port

// serve answers one connection of the host after the other.
func serve() error {
	for {
		port, err := openPort()
		if err != nil {
			return err
		}
		agent.Serve(port) // ends when the host hangs up, and the next one may ask
		port.Close()
	}
}

func openPort() (*port, error) {
	names, err := filepath.Glob("/sys/class/virtio-ports/*/name")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil || strings.TrimSpace(string(b)) != portName {
			continue
		}
		f, err := os.OpenFile("/dev/"+filepath.Base(filepath.Dir(name)), os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		return &port{File: f}, nil
	}
	return nil, fmt.Errorf("no serial port named %s", portName)
}

// port is the device as a connection. While nobody has connected on the host's
// side a read gives an end of file at once (drivers/char/virtio_console.c,
// port_fops_read): before the first byte that means "not yet".
type port struct {
	*os.File
	begun bool
}

func (p *port) Read(b []byte) (int, error) {
	for {
		n, err := p.File.Read(b)
		if n > 0 {
			p.begun = true
		}
		if p.begun || err != io.EOF {
			return n, err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (p *port) LocalAddr() net.Addr  { return address{} }
func (p *port) RemoteAddr() net.Addr { return address{} }

type address struct{}

func (address) Network() string { return "virtio-serial" }
func (address) String() string  { return portName }
