package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// patience is how long a test waits for what should come at once.
const patience = 30 * time.Second

// newPort reads a plain file: at its end a read gives an end of file at once, as
// a port's does while nobody has connected, and later what came meanwhile.
func newPort(t *testing.T) (p *port, w *os.File) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "port")
	w, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	r, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close(); r.Close() })
	return &port{File: r}, w
}

type read struct {
	text string
	err  error
}

func readAsync(p *port) <-chan read {
	got := make(chan read, 1)
	go func() {
		b := make([]byte, 100)
		n, err := p.Read(b)
		got <- read{string(b[:n]), err}
	}()
	return got
}

func TestPort(t *testing.T) {
	p, w := newPort(t)
	got := readAsync(p)
	select {
	case r := <-got:
		t.Fatalf("before the first byte came %q, %v", r.text, r.err)
	case <-time.After(50 * time.Millisecond):
	}
	fmt.Fprint(w, "hello")
	select {
	case r := <-got:
		if r.text != "hello" || r.err != nil {
			t.Fatalf("the first bytes are %q, %v", r.text, r.err)
		}
	case <-time.After(patience):
		t.Fatal("the first bytes did not come")
	}
	// Now an end is one: the host has hung up.
	select {
	case r := <-readAsync(p):
		if r.text != "" || r.err != io.EOF {
			t.Errorf("after the last byte came %q, %v", r.text, r.err)
		}
	case <-time.After(patience):
		t.Error("the end did not come")
	}
}

// TestPortBroken: what is no end of file is an error from the start.
func TestPortBroken(t *testing.T) {
	p, _ := newPort(t)
	p.Close()
	select {
	case r := <-readAsync(p):
		if r.err == nil || r.err == io.EOF {
			t.Errorf("read %q, %v", r.text, r.err)
		}
	case <-time.After(patience):
		t.Error("it waits for ever")
	}
}

func TestAwaitFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "vda")
	if err := awaitFile(name, 30*time.Millisecond); err == nil || !strings.Contains(err.Error(), name) {
		t.Errorf("what never comes: %v", err)
	}
	time.AfterFunc(50*time.Millisecond, func() { os.WriteFile(name, nil, 0o600) })
	if err := awaitFile(name, patience); err != nil {
		t.Error(err)
	}
}

func TestCommand(t *testing.T) {
	if err := command("sh", "-c", "exit 0"); err != nil {
		t.Error(err)
	}
	err := command("sh", "-c", "echo to   one; echo to   two >&2; exit 3")
	for _, want := range []string{"sh -c", "exit status 3", "to one", "to two"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
	if err := command("no-such-program"); err == nil || !strings.Contains(err.Error(), "no-such-program") {
		t.Errorf("what is not there: %v", err)
	}
}

func TestLoadModules(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/readme", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := loadModules(dir); err != nil {
		t.Errorf("nothing to load: %v", err)
	}
	if err := os.WriteFile(dir+"/00-broken.ko", []byte("no module"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := loadModules(dir); err == nil || !strings.Contains(err.Error(), "00-broken.ko") {
		t.Errorf("what is no module: %v", err)
	}
}

// TestOnlyInTheGuest: started by hand it changes nothing of this machine.
func TestOnlyInTheGuest(t *testing.T) {
	if os.Getpid() == 1 {
		t.Fatal("this test is PID 1 and would begin to change roots")
	}
	if err := enterRoot(); err == nil || !strings.Contains(err.Error(), "PID 1") {
		t.Errorf("error %v", err)
	}
}
