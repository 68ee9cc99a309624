package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/hostsim"
	"go.yaml.in/yaml/v3"
)

// daemon is a running drivebay serve and a client of its socket.
type daemon struct {
	cmd    *exec.Cmd
	dir    string
	began  time.Time
	client http.Client
}

// start runs the daemon on a simulated rack of 100 drives, of which as many as hung
// hang from the start. It returns when the daemon is ready.
func start(binary string, hung int, more ...string) (*daemon, error) {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, err
	}
	spec := hostsim.Generate(100)
	for i := range hung {
		spec.Script = append(spec.Script, hostsim.TimedFault{Fault: hostsim.Fault{Drive: fmt.Sprintf("sd%c", 'a'+i), Fault: "hang"}})
	}
	text, err := yaml.Marshal(spec)
	if err != nil {
		return nil, err
	}
	sim := filepath.Join(dir, "rack.yaml")
	if err := os.WriteFile(sim, text, 0o600); err != nil {
		return nil, err
	}
	d, err := launch(binary, dir, append([]string{"--sim", sim}, more...)...)
	if err != nil {
		os.RemoveAll(dir)
	}
	return d, err
}

// launch starts the daemon with dir as its state directory and returns when it is ready.
func launch(binary, dir string, more ...string) (*daemon, error) {
	socket := filepath.Join(dir, "s")
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	args := append([]string{"serve", "--state-dir", dir, "--api", "unix://" + socket}, more...)
	d := &daemon{dir: dir, began: time.Now(), cmd: exec.Command(binary, args...)}
	d.cmd.Stdout, d.cmd.Stderr = log, log
	d.cmd.Env = append(os.Environ(), "DRIVEBAY_POLL_EVIDENCE=10m") // as on a real machine; a simulated one is polled more often
	d.client.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var nd net.Dialer
		return nd.DialContext(ctx, "unix", socket)
	}}
	if err := d.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%w (make build first)", err)
	}
	for time.Since(d.began) < 20*time.Second {
		if _, err := d.get("/readyz"); err == nil {
			return d, nil
		}
		time.Sleep(5 * time.Millisecond)
	}
	out, _ := os.ReadFile(filepath.Join(dir, "log"))
	d.kill()
	return nil, fmt.Errorf("the daemon does not get ready:\n%s", out)
}

func (d *daemon) kill() {
	_ = d.cmd.Process.Kill()
	_ = d.cmd.Wait()
}

func (d *daemon) stop() {
	d.kill()
	os.RemoveAll(d.dir)
}

func (d *daemon) get(path string) ([]byte, error) {
	resp, err := d.client.Get("http://drivebay" + path)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", path, resp.Status)
	}
	return b, err
}

func (d *daemon) fault(drive, fault string) error {
	body, _ := json.Marshal(hostsim.Fault{Drive: drive, Fault: fault})
	resp, err := d.client.Post("http://drivebay/sim/v1/faults", "application/json", strings.NewReader(string(body)))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		text, _ := io.ReadAll(resp.Body)
		return fmt.Errorf("%s of %s: %s", fault, drive, text)
	}
	return nil
}

func coldStart(binary string, hung int) (row, error) {
	limit := map[int]time.Duration{0: 2 * time.Second, 5: 5 * time.Second}[hung]
	d, err := start(binary, hung)
	if err != nil {
		return row{}, err
	}
	took := time.Since(d.began)
	d.stop()
	return row{fmt.Sprintf("cold start to ready, 100 drives, %d hung", hung), fmt.Sprintf("<= %v", limit), ms(took), took <= limit}, nil
}

// daemonRows measures one daemon: idle, while a drive hangs, and while drives are pulled.
func daemonRows(binary string) ([]row, error) {
	d, err := start(binary, 0)
	if err != nil {
		return nil, err
	}
	defer d.stop()
	time.Sleep(5 * time.Second) // until every drive has been read
	rows, err := d.idle("100 drives, the simulated machine's share included", 40)
	if err != nil {
		return rows, err
	}
	if err := d.fault("sda", "hang"); err != nil {
		return rows, err
	}
	hung, err := d.pages()
	rows = append(rows, hung...)
	if err != nil {
		return rows, err
	}
	pulled, err := d.pulls()
	if err != nil {
		return rows, err
	}
	return append(rows, pulled), nil
}

// pages measures the most used pages of the API while a drive hangs.
func (d *daemon) pages() ([]row, error) {
	var rows []row
	for _, p := range []string{"/metrics", "/api/v1/drives"} {
		var took []time.Duration
		for range 100 {
			began := time.Now()
			if _, err := d.get(p); err != nil {
				return rows, err
			}
			took = append(took, time.Since(began))
		}
		p50, p99 := percentile(took, 50), percentile(took, 99)
		rows = append(rows, row{p + " with one of 100 hung, p50 / p99", "<= 20 ms", ms(p50) + " / " + ms(p99), p50 <= 20*time.Millisecond})
	}
	return rows, nil
}

// pulls measures the time from the pull of a drive until the API shows it OFFLINE.
func (d *daemon) pulls() (row, error) {
	var took []time.Duration
	for i := range 20 {
		is, err := d.drive(fmt.Sprintf("sd%c", 'b'+i%6))
		if err != nil {
			return row{}, err
		}
		began := time.Now()
		if err := d.fault(is.Serial, "vanish"); err != nil {
			return row{}, err
		}
		if err := d.until(is.ID, drivebay.StatusOffline); err != nil {
			return row{}, err
		}
		took = append(took, time.Since(began))
		if err := d.fault(is.Serial, "return"); err != nil {
			return row{}, err
		}
		if err := d.until(is.ID, drivebay.StatusOnline); err != nil {
			return row{}, err
		}
	}
	p50, p99 := percentile(took, 50), percentile(took, 99)
	return row{"pull of a drive to OFFLINE, p50 / p99 of 20", "p99 <= 1 s", ms(p50) + " / " + ms(p99), p99 <= time.Second}, nil
}

func (d *daemon) drive(name string) (is drivebay.Drive, err error) {
	b, err := d.get("/api/v1/drives/" + name)
	if err == nil {
		err = json.Unmarshal(b, &is)
	}
	return is, err
}

func (d *daemon) until(name string, want drivebay.Status) error {
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		is, err := d.drive(name)
		if err != nil {
			return err
		}
		if is.Status == want {
			return nil
		}
	}
	return fmt.Errorf("%s did not become %v", name, want)
}

func assess(binary, fleet string) (row, error) {
	took := medianOf(3, func() { _ = exec.Command(binary, "assess", "-o", "json", fleet).Run() })
	out, err := exec.Command(binary, "assess", "-o", "json", fleet).Output()
	if err != nil {
		return row{}, fmt.Errorf("assess: %w", err)
	}
	n := strings.Count(string(out), "\n")
	return row{fmt.Sprintf("assess of %d recorded drives", n), "<= 5 s", ms(took), took <= 5*time.Second}, nil
}
