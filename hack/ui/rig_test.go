// Package ui tests the page in a real browser, against the program and a simulated rack.
package ui

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

const (
	repository = "../.."
	patience   = 20 * time.Second
)

var program string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "ui")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		program = filepath.Join(dir, "drivebay")
		cmd := exec.Command("go", "build", "-tags", "grpcnotrace", "-o", program, "./cmd/drivebay")
		cmd.Dir, cmd.Stderr = repository, os.Stderr
		if err := cmd.Run(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// rig is a daemon with a simulated rack, and a browser in front of it.
type rig struct {
	*testing.T
	dir    string
	daemon *exec.Cmd
	ui     []string // the command that prints the link
	first  string   // what the page shows when it is there
	served *exec.Cmd
	tab    context.Context

	mu       sync.Mutex
	troubles []string // of the browser: exceptions, violations of the policy
}

// start starts a daemon. edit changes the description of the rack.
func start(t *testing.T, edit func(string) string) *rig {
	t.Helper()
	dir := folder(t)
	spec, err := os.ReadFile(repository + "/examples/rack24.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := string(spec)
	if edit != nil {
		text = edit(text)
	}
	write(t, dir+"/rack.yaml", text)
	write(t, dir+"/config.yaml", "replacement: {trigger: off}\npoll: {tick: 200ms}\n")
	r := &rig{T: t, dir: dir, ui: []string{program, "ui"}, first: "#rack-body button"}
	r.serve()
	t.Cleanup(r.stop)
	return r
}

// folder makes a folder with a short name: a socket is in it.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rig")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) env() []string {
	return append(os.Environ(), "DRIVEBAY_API=unix://"+r.dir+"/s", "DRIVEBAY_STATE_DIR="+r.dir+"/state", "NO_COLOR=1")
}

// serve starts the daemon and waits for its greeting.
func (r *rig) serve() {
	r.Helper()
	cmd := exec.Command(program, "serve", "--sim", r.dir+"/rack.yaml", "--config", r.dir+"/config.yaml")
	cmd.Env = r.env()
	r.daemon = cmd
	greets(r.T, cmd, "try: drivebay")
}

// greets starts a program and returns its output up to a line with some words.
func greets(t *testing.T, cmd *exec.Cmd, words string) string {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := make(chan string, 1)
	go func() {
		var all strings.Builder
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			all.WriteString(lines.Text() + "\n")
			if strings.Contains(lines.Text(), words) {
				said <- all.String()
			}
		}
	}()
	select {
	case text := <-said:
		return text
	case <-time.After(patience):
		_ = cmd.Process.Kill()
		t.Fatalf("%v does not greet: %s", cmd.Args, &errs)
	}
	return ""
}

// stop ends the daemon.
func (r *rig) stop() {
	if r.daemon != nil {
		_ = r.daemon.Process.Signal(syscall.SIGTERM)
		_ = r.daemon.Wait()
		r.daemon = nil
	}
}

// run runs a command that has to succeed.
func (r *rig) run(args ...string) string {
	r.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = r.env()
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.Fatalf("drivebay %q: %v: %s", args, err, out)
	}
	return string(out)
}

// link starts the command that serves the page, and returns the link that it prints.
func (r *rig) link() string {
	r.Helper()
	cmd := exec.Command(r.ui[0], r.ui[1:]...)
	cmd.Env = r.env()
	r.served = cmd
	text := greets(r.T, cmd, "ctrl-c")
	r.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for _, word := range strings.Fields(text) {
		if strings.HasPrefix(word, "http://") {
			return word
		}
	}
	r.Fatalf("no link: %s", text)
	return ""
}

// open opens the page in a browser of its own.
func (r *rig) open(width, height int64) {
	r.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.UserDataDir(filepath.Join(r.dir, "browser")), chromedp.Flag("hide-scrollbars", true), chromedp.Flag("force-device-scale-factor", "1"))
	if path, err := exec.LookPath("chromium"); err == nil {
		options = append(options, chromedp.ExecPath(path))
	}
	allocator, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	r.Cleanup(cancel)
	tab, cancel := chromedp.NewContext(allocator, chromedp.WithListener(r.watch))
	r.Cleanup(cancel)
	r.tab = tab
	if err := chromedp.Do(tab, chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, log.Enable, cdp.Empty{})
		return err
	})); err != nil { // no deadline here: the browser lives as long as this context
		r.Fatal(err)
	}
	r.do(chromedp.EmulateViewport(width, height), chromedp.Navigate(r.link()))
	r.visible(r.first)
}

// watch keeps what the browser complains about.
func (r *rig) watch(event any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		r.troubles = append(r.troubles, e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		switch e.Entry.Source {
		case log.EntrySourceSecurity, log.EntrySourceViolation, log.EntrySourceJavascript:
			r.troubles = append(r.troubles, e.Entry.Text)
		}
	}
}

// calm fails if the browser reported an exception or a violation of the policy.
func (r *rig) calm() {
	r.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.troubles {
		r.Errorf("the browser reports: %s", t)
	}
}

type action = chromedp.Action[chromedp.Void]

func (r *rig) do(actions ...action) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.tab, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		soon, end := context.WithTimeout(r.tab, 2*time.Second)
		defer end()
		text, _ := chromedp.Run(soon, chromedp.Evaluate[string]("document.body.innerText"))
		r.Fatalf("%v; the page shows:\n%s", err, text)
	}
}

func (r *rig) click(selector string) { r.Helper(); r.do(chromedp.Click(chromedp.CSS(selector))) }
func (r *rig) visible(selector string) {
	r.Helper()
	r.do(chromedp.WaitVisible(chromedp.CSS(selector)))
}
func (r *rig) hidden(selector string) {
	r.Helper()
	r.do(chromedp.WaitNotVisible(chromedp.CSS(selector)))
}
func (r *rig) gone(selector string) {
	r.Helper()
	r.do(chromedp.WaitNotPresent(chromedp.CSS(selector)))
}
func (r *rig) keys(keys ...string) {
	r.Helper()
	for _, k := range keys {
		r.do(chromedp.KeyEvent(k))
	}
}

// eval evaluates an expression.
func eval[T any](r *rig, expression string) T {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.tab, patience)
	defer cancel()
	out, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		r.Fatalf("%s: %v", expression, err)
	}
	return out
}

// shows waits until an element shows some words.
func (r *rig) shows(selector string, words ...string) {
	r.Helper()
	var text string
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		text = eval[string](r, fmt.Sprintf("[...document.querySelectorAll(%q)].map((e) => e.innerText).join('\\n')", selector))
		all := true
		for _, w := range words {
			all = all && strings.Contains(text, w)
		}
		if all {
			return
		}
		if time.Now().After(end) {
			r.Fatalf("%s does not show %q:\n%s", selector, words, text)
		}
	}
}

// bay returns the selector of the drive in a bay.
func bay(name string) string { return fmt.Sprintf("button.tile[data-words^=%q]", "bay "+name+",") }

// press confirms an action of the drive that is shown.
func (r *rig) press(action string, names ...string) {
	r.Helper()
	r.click(fmt.Sprintf("#drive button[data-do=%q]", action))
	r.visible("#ask[open]")
	r.shows("#ask", names...)
	r.click("#ask-go")
	r.gone("#ask[open]")
}

// most is how large a picture in docs may be.
const most = 150 << 10

// picture takes a picture of the window for the documentation.
func (r *rig) picture(name string) {
	r.Helper()
	time.Sleep(300 * time.Millisecond) // transitions
	shot, err := chromedp.Run(r.tab, chromedp.CaptureScreenshot())
	if err != nil {
		r.Fatal(err)
	}
	if shot, err = paletted(shot); err != nil {
		r.Fatal(err)
	}
	if len(shot) > most {
		r.Errorf("%s has %d bytes", name, len(shot))
	}
	dir := os.Getenv("DRIVEBAY_PICTURES")
	if dir == "" {
		dir = r.dir
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), shot, 0o644); err != nil {
		r.Fatal(err)
	}
}

// paletted returns a picture with its 255 most frequent colors: half the bytes, and no difference that is seen.
func paletted(in []byte) ([]byte, error) {
	img, err := png.Decode(bytes.NewReader(in))
	if err != nil {
		return nil, err
	}
	count := map[color.RGBA]int{}
	b := img.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			count[color.RGBAModel.Convert(img.At(x, y)).(color.RGBA)]++
		}
	}
	all := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int { return count[b] - count[a] })
	var palette color.Palette
	for _, c := range all[:min(255, len(all))] {
		palette = append(palette, c)
	}
	small := image.NewPaletted(b, palette)
	nearest := map[color.RGBA]uint8{}
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			c := color.RGBAModel.Convert(img.At(x, y)).(color.RGBA)
			n, known := nearest[c]
			if !known {
				n = uint8(palette.Index(c))
				nearest[c] = n
			}
			small.SetColorIndex(x, y, n)
		}
	}
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	err = encoder.Encode(&out, small)
	return out.Bytes(), err
}

func (r *rig) scheme(name string) {
	r.Helper()
	r.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
		return err
	}))
}
