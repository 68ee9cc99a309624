package agent

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestPut(t *testing.T) {
	c := newGuest(t)
	dir := t.TempDir()
	name := filepath.Join(dir, "new/folders/file & more?x=1")
	for _, test := range []struct {
		mode    os.FileMode
		content string
	}{
		{0o640, "longer at first"},
		{0o755, "short"}, // what was there is gone, the mode of what was there too
		{0o666, ""},      // whatever the agent's umask
	} {
		if err := c.Put(t.Context(), name, test.mode, strings.NewReader(test.content)); err != nil {
			t.Fatal(err)
		}
		st, err := os.Stat(name)
		if err != nil || st.Mode() != test.mode {
			t.Errorf("mode %v, want %v: %v", st.Mode(), test.mode, err)
		}
		if b, err := os.ReadFile(name); err != nil || string(b) != test.content {
			t.Errorf("content %q, want %q: %v", b, test.content, err)
		}
		if b, err := c.Get(t.Context(), name); err != nil || string(b) != test.content {
			t.Errorf("comes back as %q, want %q: %v", b, test.content, err)
		}
	}
}

func TestPutWhereNothingCanBe(t *testing.T) {
	c := newGuest(t)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{file + "/below", filepath.Dir(file)} {
		if err := c.Put(t.Context(), name, 0o644, strings.NewReader("x")); err == nil {
			t.Errorf("%s was written", name)
		}
	}
}

// begun is the content of a file that ends badly once the guest has begun to write it.
type begun struct {
	t    *testing.T
	file string
	then func() error
	sent bool
}

func (r *begun) Read(b []byte) (int, error) {
	if !r.sent {
		r.sent = true
		return copy(b, "half a file"), nil
	}
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		if st, err := os.Stat(r.file); err == nil && st.Size() > 0 {
			return 0, r.then()
		}
		if time.Now().After(end) {
			r.t.Error("nothing was written")
			return 0, io.ErrUnexpectedEOF
		}
	}
}

// TestPutCutShort: half a file is not a file that was written.
func TestPutCutShort(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	broken := errors.New("the source broke")
	err := newGuest(t).Put(t.Context(), file, 0o644, &begun{t: t, file: file, then: func() error { return broken }})
	if !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

func TestPutEndsWithItsContext(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	c := newGuest(t)
	ctx, cancel := context.WithCancel(t.Context())
	done, hold := make(chan struct{}), make(chan struct{})
	defer close(hold)
	var err error
	go func() {
		defer close(done)
		err = c.Put(ctx, file, 0o644, &begun{t: t, file: file, then: func() error {
			cancel()
			<-hold // as a source does that has no more to say for now
			return io.EOF
		}})
	}()
	await(t, "the end of Put", done)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestGetMissing(t *testing.T) {
	c := newGuest(t)
	for _, name := range []string{"/no/such/file", t.TempDir() + "/none"} {
		if b, err := c.Get(t.Context(), name); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
}

// TestGetUnreadable: an empty answer would be taken for an empty file.
func TestGetUnreadable(t *testing.T) {
	c := newGuest(t)
	if b, err := c.Get(t.Context(), t.TempDir()); err == nil {
		t.Errorf("a folder is a file with %q in it", b)
	}
	// Address 0 of a process is not there to be read (proc_pid_mem(5)).
	if b, err := c.Get(t.Context(), "/proc/self/mem"); err == nil {
		t.Errorf("what cannot be read is %q", b)
	}
}
