package ui

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// The release of axe-core, and the checksum of its axe.min.js. `npm pack axe-core@VERSION` fetches another one.
const (
	axeVersion = "4.14.1"
	axeSum     = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"
)

// axe returns the script of axe-core: the file DRIVEBAY_AXE, or the one in .cache, which npm fetches once.
func axe(t *testing.T) string {
	t.Helper()
	path := os.Getenv("DRIVEBAY_AXE")
	if path == "" {
		path = filepath.Join(repository, ".cache", "axe-core-"+axeVersion+".min.js")
		if _, err := os.Stat(path); err != nil {
			if err := fetchAxe(t.TempDir(), path); err != nil {
				t.Fatalf("the page is NOT checked with axe-core: %v: install npm and let it reach its registry, or name axe.min.js of axe-core %s with DRIVEBAY_AXE=FILE", err, axeVersion)
			}
		}
	}
	script, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(script); hex.EncodeToString(sum[:]) != axeSum {
		t.Fatalf("%s is not axe.min.js of axe-core %s: its SHA-256 is %x; delete it", path, axeVersion, sum)
	}
	return string(script)
}

// fetchAxe lets npm fetch the package, and writes its script to a file. The caller checks the script.
func fetchAxe(dir, path string) error {
	var out, errs bytes.Buffer
	cmd := exec.Command("npm", "pack", "axe-core@"+axeVersion, "--silent", "--ignore-scripts")
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &errs
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("npm pack: %w: %s%s", err, &out, &errs)
	}
	packed, err := os.Open(filepath.Join(dir, "axe-core-"+axeVersion+".tgz"))
	if err != nil {
		return err
	}
	defer packed.Close()
	z, err := gzip.NewReader(packed)
	if err != nil {
		return err
	}
	for files := tar.NewReader(z); ; {
		switch h, err := files.Next(); {
		case errors.Is(err, io.EOF):
			return errors.New("the package has no axe.min.js")
		case err != nil:
			return err
		case h.Name == "package/axe.min.js":
			script, err := io.ReadAll(io.LimitReader(files, 4<<20))
			if err != nil {
				return err
			}
			return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, script, 0o644))
		}
	}
}

// sizes are the windows that the page is checked in: a laptop and a phone.
var sizes = [][2]int64{{1280, 900}, {390, 844}}

// eachLook checks the page with axe-core in each size and color scheme, in each of the states that show brings up.
func (r *rig) eachLook(show func(check func(state string))) {
	r.Helper()
	script := axe(r.T)
	for _, size := range sizes {
		r.do(chromedp.EmulateViewport(size[0], size[1]))
		for _, scheme := range []string{"light", "dark"} {
			r.scheme(scheme)
			show(func(state string) {
				r.Helper()
				if !eval[bool](r, "Boolean(window.axe)") {
					eval[bool](r, script+"; true")
				}
				found := eval[[]string](r, `axe.run().then((a) => a.violations.flatMap((v) => v.nodes.map((n) => v.impact + ' ' + v.id + ' ' + n.target.join(' ') + ': ' + n.failureSummary)))`)
				for _, f := range found[:min(len(found), 10)] {
					r.Errorf("%s, %d pixels wide, %s: %s", state, size[0], scheme, f)
				}
				if wide := eval[int64](r, "document.documentElement.scrollWidth"); wide > size[0] {
					r.Errorf("%s, %d pixels wide, %s: the page is %d pixels wide", state, size[0], scheme, wide)
				}
			})
		}
	}
}

// axe-core finds nothing on the rack, a drive, and a dialog.
func TestAxe(t *testing.T) {
	r := start(t, nil)
	sick(r)
	r.open(1280, 900)
	r.eachLook(func(check func(string)) {
		check("the rack")
		r.click(bay("Slot 13"))
		r.visible("#drive .chart")
		r.click("#drive details summary")
		check("a drive")
		r.click("#drive button[data-do=release]")
		r.visible("#ask[open]")
		check("a dialog")
		r.click("#ask .button")
		r.gone("#ask[open]")
		r.click("#drive .close")
		r.hidden("#drive")
	})
}

// axe-core finds nothing on the racks and the list of a cluster, a drive, and what is shown while the API server is away.
func TestClusterAxe(t *testing.T) {
	r, api := startCluster(t, 1, 3, 9, 41, 63, 77, 88, 120, 141) // of each kind one: for all 5,000 drives it takes minutes
	r.open(1280, 900)
	r.find(`bay:"slot 08"`) // so that some drives do not match
	r.eachLook(func(check func(string)) {
		r.click("#view-racks")
		check("racks")
		r.click("#view-list")
		r.visible(".list .line:not(.head)")
		check("the list")
		r.click(fmt.Sprintf(".list button[data-drive=%q]", sick41))
		r.shows("#drive", "1,408 sectors are reallocated")
		r.click("#drive [data-key=commands-summary]")
		check("a drive")
		r.click("#drive .close")
		r.hidden("#drive")
	})
	api.stop()
	r.shows("#notice", "The API server does not answer")
	r.eachLook(func(check func(string)) { check("the API server is away") })
}
