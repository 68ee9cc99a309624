package assess

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/smart"
)

// Largest size of one document, and of one file that is not read line by line.
const (
	maxDocument = 16 << 20
	maxFile     = 64 << 20
)

// byteOrderMark begins a file that some editors and shells of Windows wrote.
const byteOrderMark = "\xEF\xBB\xBF"

var (
	errTooLong = fmt.Errorf("%w: longer than %d MiB", drivebay.ErrInvalid, maxDocument>>20)
	errForeign = fmt.Errorf("%w: neither a smartctl document nor raw ATA blocks nor a recording", drivebay.ErrInvalid)
)

// reader finds the documents below a path and passes them to put one by one. Its methods fail only
// when put fails.
type reader struct {
	opt Options
	put func(item) error
}

func (r *reader) fail(file string, err error) error { return r.put(item{file: file, err: err}) }

func (r *reader) path(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return r.fail(path, plainError(err))
	case info.IsDir():
		return r.dir(path)
	case !info.Mode().IsRegular():
		return r.fail(path, fmt.Errorf("%w: not a file", drivebay.ErrInvalid))
	}
	return r.file(path)
}

// plainError removes the path, which the verdict already has.
func plainError(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return fmt.Errorf("%s: %w", pe.Op, pe.Err)
	}
	return err
}

// dir reads a directory in sorted order. A directory with sys/ in it is a recorded machine.
func (r *reader) dir(dir string) error {
	if r.opt.Recording != nil && isMachine(dir) {
		return r.machine(dir)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return r.fail(dir, plainError(err))
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		step := r.file
		switch {
		case e.IsDir():
			step = r.dir
		case !e.Type().IsRegular():
			continue
		}
		if err := step(path); err != nil {
			return err
		}
	}
	return nil
}

func isMachine(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, "sys"))
	return err == nil && info.IsDir()
}

func (r *reader) machine(dir string) error {
	subjects, err := r.opt.Recording(dir)
	if err != nil {
		return r.fail(dir, err)
	}
	for i := range subjects {
		if err := r.put(item{file: dir + ":" + subjects[i].Name, subject: &subjects[i]}); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) file(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return r.fail(path, plainError(err))
	}
	defer f.Close()
	src := bufio.NewReaderSize(f, 64<<10)
	if magic, _ := src.Peek(2); bytes.Equal(magic, []byte{0x1F, 0x8B}) {
		z, err := gzip.NewReader(src)
		if err != nil {
			return r.fail(path, err)
		}
		src = bufio.NewReaderSize(z, 64<<10)
	}
	name := strings.TrimSuffix(strings.ToLower(path), ".gz")
	if strings.HasSuffix(name, ".jsonl") || strings.HasSuffix(name, ".ndjson") {
		return r.lines(path, src)
	}
	b, err := io.ReadAll(io.LimitReader(src, maxFile+1))
	switch {
	case err != nil:
		return r.fail(path, err)
	case len(b) > maxFile:
		return r.fail(path, errTooLong)
	}
	return r.whole(path, b)
}

// lines reads one document a line. Empty lines are skipped, but count in the line number.
func (r *reader) lines(path string, src *bufio.Reader) error {
	if mark, _ := src.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
		_, _ = src.Discard(len(mark)) // it was peeked
	}
	for n := 1; ; n++ {
		n += skipEmpty(src)
		line, err := readLine(src)
		file := fmt.Sprintf("%s:%d", path, n)
		switch {
		case errors.Is(err, errTooLong):
			if err := r.fail(file, err); err != nil {
				return err
			}
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return r.fail(file, err)
		}
		if doc := bytes.TrimSpace(line); len(doc) > 0 {
			if err := r.put(item{file: file, data: doc, kind: smartctlDocument}); err != nil {
				return err
			}
		}
		if err != nil {
			return nil
		}
	}
}

// skipEmpty skips empty lines, and returns how many: a file can have millions of them.
func skipEmpty(src *bufio.Reader) (lines int) {
	for {
		if _, err := src.Peek(1); err != nil {
			return lines
		}
		ahead, _ := src.Peek(src.Buffered())
		n := 0
		for n < len(ahead) && ahead[n] == '\n' {
			n++
		}
		_, _ = src.Discard(n) // n bytes are buffered
		if lines += n; n < len(ahead) {
			return lines
		}
	}
}

// readLine returns a copy of the next line. It skips a line that is too long entirely, so that the
// next call starts at the next line.
func readLine(src *bufio.Reader) ([]byte, error) {
	var line []byte
	tooLong := false
	for {
		part, err := src.ReadSlice('\n')
		if tooLong = tooLong || len(line)+len(part) > maxDocument; tooLong {
			line = nil
		} else {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case tooLong && (err == nil || errors.Is(err, io.EOF)):
			return nil, errTooLong
		}
		return line, err
	}
}

// whole detects the format of a file by its first bytes.
func (r *reader) whole(path string, b []byte) error {
	trimmed := bytes.TrimSpace(bytes.TrimPrefix(b, []byte(byteOrderMark)))
	switch {
	case smart.IsBlocks(b):
		return r.put(item{file: path, data: b, kind: ataBlocks})
	case len(trimmed) == 0:
		return r.fail(path, fmt.Errorf("%w: empty file", drivebay.ErrInvalid))
	case trimmed[0] == '[':
		return r.array(path, trimmed)
	case trimmed[0] == '{':
		return r.documents(path, trimmed)
	}
	return r.fail(path, errForeign)
}

// documents passes on a single document under the name of the file, and several documents with
// their number.
func (r *reader) documents(path string, b []byte) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	var first json.RawMessage
	if err := dec.Decode(&first); err != nil || !dec.More() {
		return r.document(path, b)
	}
	next := first
	for n := 1; ; n++ {
		file := fmt.Sprintf("%s:%d", path, n)
		if err := r.document(file, next); err != nil {
			return err
		}
		next = nil
		switch err := dec.Decode(&next); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return r.fail(fmt.Sprintf("%s:%d", path, n+1), fmt.Errorf("smartctl document: %w", err))
		}
	}
}

// array passes on the elements of an array of documents.
func (r *reader) array(path string, b []byte) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	if _, err := dec.Token(); err != nil {
		return r.fail(path, err)
	}
	n := 1
	for ; dec.More(); n++ {
		file := fmt.Sprintf("%s:%d", path, n)
		var doc json.RawMessage
		if err := dec.Decode(&doc); err != nil {
			return r.fail(file, fmt.Errorf("array of documents: %w", err))
		}
		if err := r.document(file, doc); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil {
		return r.fail(fmt.Sprintf("%s:%d", path, n), errors.New("array of documents: truncated"))
	}
	if n == 1 {
		return r.fail(path, fmt.Errorf("%w: contains no document", drivebay.ErrInvalid))
	}
	return nil
}

func (r *reader) document(file string, b []byte) error {
	if len(b) > maxDocument {
		return r.fail(file, errTooLong)
	}
	return r.put(item{file: file, data: b, kind: smartctlDocument})
}
