package ui

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// sick41 is the drive that is BAD and has a volume.
const sick41 = "naa-5000c50000290008.storage-41"

func cell(drive string) string { return fmt.Sprintf(".cell[data-drive=%q]", drive) }

// find types what a person looks for, in place of what was there.
func (r *rig) find(text string) {
	r.Helper()
	eval[bool](r, `document.getElementById("find").select(), true`)
	r.do(chromedp.Click(chromedp.CSS("#find")), chromedp.KeyEvent(kb.Backspace))
	eval[bool](r, `(() => { const f = document.getElementById("find"); f.value = ""; f.dispatchEvent(new Event("input")); return true; })()`)
	if text != "" {
		r.do(chromedp.SendKeys(chromedp.CSS("#find"), text))
	}
}

// All nodes of a cluster with 5,000 drives, what is wrong, and why a drive is what it is.
func TestCluster(t *testing.T) {
	r, api := startCluster(t)
	r.open(1280, 900)
	r.scheme("light")
	r.shows("#machine", "prod")
	r.shows("#verdict", "DATA AT RISK")
	r.shows("#link", "live")
	r.shows("#found", "5,000 drives on 200 nodes")
	r.shows("#healths", "BAD", "3", "SUSPECT", "UNKNOWN", "4,992", "OFFLINE", "1")
	r.shows("#now-body", "node storage-141", "has not reported for 7 min", "drive sdh, bay Slot 08, node storage-41", "kubectl drivebay status")
	r.shows(`.node[data-node="storage-141"]`, "NOT REPORTING", "What is shown of it is old", "ACME R740")
	r.shows(`.node[data-node="storage-41"]`, "DATA AT RISK", "1 BAD")
	if n := eval[int](r, "document.querySelectorAll('.cell').length"); n != 5000 {
		t.Errorf("%d drives are drawn", n)
	}
	r.picture("page-cluster")

	r.click(cell(sick41))
	r.shows("#drive", "1,408 sectors are reallocated", "storage-41", "server ACME R740, serial CN00041", "kubectl drivebay replace "+sick41, "pvc-0041-02")
	if n := eval[int](r, "document.querySelectorAll('#drive [data-do]').length"); n != 0 {
		t.Errorf("the page of a cluster has %d buttons that act", n)
	}
	r.click("#drive [data-key=commands-summary]")
	r.shows("#drive", "kubectl drivebay cordon "+sick41, "kubectl drivebay locate "+sick41+" on")
	r.click(fmt.Sprintf("#drive [data-key=%q]", "copy-kubectl drivebay replace "+sick41))
	r.shows("#spoken", "The command is")

	r.click("#view-list")
	r.shows(".line.chosen", "sdh", "storage-41")
	r.click("#drive .close")
	r.hidden("#drive")
	r.shows(".line:first-child", "BAD")

	// A reload shows the same.
	r.find("volume:pvc-0120-03")
	r.shows("#found", "1 of 5,000 drives")
	r.do(chromedp.Reload())
	r.shows("#found", "1 of 5,000 drives")
	r.shows(".line", "storage-120")

	api.put("drives", drive(5, 2, reallocated))
	r.find("")
	r.shows("#healths [data-health=BAD]", "4")
	r.calm()
}

// A person finds drives by what is known of them.
func TestClusterFind(t *testing.T) {
	r, _ := startCluster(t)
	r.open(1280, 900)
	r.scheme("dark")
	for text, want := range map[string]string{
		"ZL204108":                      "1 of 5,000 drives on 200 nodes, on 1 node",
		"reallocated":                   "3 of 5,000",
		"node:storage-1":                "25 of 5,000", // not storage-10
		"storage-41 slot 08":            "1 of 5,000",
		`node:storage-41 bay:"slot 08"`: "1 of 5,000",
		"pvc-0041":                      "5 of 5,000",
		"reason:WearHigh":               "3 of 5,000",
		"model:mzql":                    "600 of 5,000",
		"health:offline":                "1 of 5,000",
		"nothing-has-this":              "0 of 5,000 drives on 200 nodes, on 0 nodes",
	} {
		r.find(text)
		r.shows("#found", want)
	}
	r.click("#found button")
	r.shows("#found", "5,000 drives on 200 nodes")
	r.click("#healths [data-health=BAD]")
	r.click("#healths [data-health=SUSPECT]")
	r.shows("#found", "6 of 5,000")
	if n := eval[int](r, "[...document.querySelectorAll('.node')].filter((n) => !n.hidden).length"); n != 6 {
		t.Errorf("%d nodes are shown", n)
	}
	r.click("#healths [data-health=BAD]")
	r.shows("#found", "3 of 5,000")
	r.click("#healths [data-health=SUSPECT]")

	// By keyboard alone: to the field, to the drives, from bay to bay, into a drive and out of it.
	r.do(chromedp.KeyEvent(kb.Escape))
	eval[bool](r, "document.activeElement.blur(), true")
	eval[bool](r, `document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "/", bubbles: true, cancelable: true })), true`) // chromedp sends the character even if the key is handled
	r.do(chromedp.KeyEvent("node:storage-88"))
	r.shows("#found", "25 of 5,000")
	eval[bool](r, `document.querySelector('.node[data-node="storage-88"] .cell').focus(), true`)
	r.keys(kb.ArrowRight, kb.ArrowRight, kb.ArrowRight, kb.ArrowRight, kb.Enter)
	r.shows("#drive", "sde", "Move the volumes off the drive", "kubectl drivebay cancel naa-5000c50000580005.storage-88")
	if !eval[bool](r, "document.getElementById('drive').contains(document.activeElement)") {
		t.Error("the focus is not in the drive")
	}
	r.picture("page-cluster-drive")
	r.keys(kb.Escape)
	r.hidden("#drive")
	if got := eval[string](r, "document.activeElement.dataset.drive"); got != "naa-5000c50000580005.storage-88" {
		t.Errorf("the focus is on %q", got)
	}
	r.calm()
}

// Scrolling and filtering 5,000 drives takes less than 100 ms until the picture is there.
func TestClusterSpeed(t *testing.T) {
	r, _ := startCluster(t)
	r.open(1280, 900)
	r.shows("#found", "5,000 drives on 200 nodes")
	const most = 100.0
	measure := func(what, do string) {
		t.Helper()
		best := 2 * most
		for range 20 { // the machine may have other work: the fastest counts
			// After a frame was drawn, a message comes.
			took := eval[float64](r, fmt.Sprintf(`new Promise((done) => {
				const began = performance.now();
				%s;
				requestAnimationFrame(() => { const c = new MessageChannel(); c.port1.onmessage = () => done(performance.now() - began); c.port2.postMessage(0); });
			})`, do))
			if best = min(best, took); best < most {
				break
			}
		}
		if best >= most {
			t.Errorf("%s takes %.0f ms", what, best)
		}
		t.Logf("%s: %.0f ms", what, best)
	}
	look := func(text string) string {
		return fmt.Sprintf(`(() => { const f = document.getElementById("find"); f.value = %q; f.dispatchEvent(new Event("input")); })()`, text)
	}
	for _, view := range []string{"racks", "list"} {
		r.click("#view-" + view)
		scroll := `window.scrollBy(0, 2500)`
		if view == "list" {
			scroll = `document.querySelector(".list").scrollTop += 30000`
		}
		for range 3 {
			measure(view+": scroll", scroll)
		}
		for _, text := range []string{"s", "storage-1", "reallocated", "", "slot 08", ""} {
			measure(fmt.Sprintf("%s: filter %q", view, text), look(text))
		}
	}
	// The rows in sight are there, and no others.
	eval[bool](r, `document.querySelector(".list").scrollTop = 38 * 4000, true`)
	r.shows(".list", "GOOD")
	time.Sleep(200 * time.Millisecond)
	if n := eval[int](r, `document.querySelectorAll(".list .line:not(.head)").length`); n < 10 || n > 120 {
		t.Errorf("%d rows are built", n)
	}
	if !eval[bool](r, `(() => { const box = document.querySelector(".list").getBoundingClientRect(); const at = document.elementFromPoint(box.left + 200, box.top + 300); return Boolean(at?.closest(".line")); })()`) {
		t.Error("the middle of the list is empty after scrolling")
	}
	r.calm()
}

// A node that falls silent, an API server that goes away and comes back, one that refuses to list the drives, and the command that ends.
func TestClusterLost(t *testing.T) {
	r, api := startCluster(t)
	r.open(1280, 900)
	r.scheme("light")
	r.shows("#found", "5,000 drives on 200 nodes")
	api.put("leases", lease(2, 3*time.Hour, 40*time.Second))
	r.shows(`.node[data-node="storage-2"]`, "NOT REPORTING", "3 h")
	api.put("leases", lease(2, 0, time.Hour))
	r.shows(`.node[data-node="storage-2"]`, "FINE")

	api.stop()
	r.shows("#notice", "The API server does not answer", "What is shown is from")
	r.shows("#link", "not connected")
	if n := eval[int](r, "document.querySelectorAll('.cell').length"); n != 5000 {
		t.Errorf("%d drives are still shown", n)
	}
	r.picture("page-cluster-away")
	api.start(t)
	r.hidden("#notice")
	r.shows("#link", "live")
	api.put("drives", drive(6, 2, worn))
	r.shows(`.node[data-node="storage-6"]`, "1 SUSPECT")

	api.stop()
	api.refused = "drives"
	api.start(t)
	r.shows("#notice", "The API server does not show the drives", "What is shown is from", "drives is forbidden")
	r.shows("#link", "not connected")
	api.stop()
	api.refused = ""
	api.start(t)
	r.hidden("#notice")

	_ = r.served.Process.Kill()
	r.shows("#notice", "Connection lost")
	r.calm()
}

// The controller serves the same page on a socket, and nothing else there.
func TestClusterController(t *testing.T) {
	r, _ := newCluster(t)
	cmd := exec.Command(program, "serve", "--role=controller", "--csi-endpoint=unix://"+r.dir+"/csi", "--kubeconfig="+r.dir+"/kubeconfig", "--kubernetes-page", "--api=unix://"+r.dir+"/s")
	cmd.Env = r.env()
	greets(t, cmd, "page")
	r.daemon = cmd
	t.Cleanup(r.stop)
	r.ui = []string{program, "ui"}
	r.open(1280, 900)
	r.shows("#found", "5,000 drives on 200 nodes")
	r.click(cell(sick41))
	r.shows("#drive", "kubectl drivebay replace "+sick41)
	for path, want := range map[string]int{"/ui/drives/" + sick41: 200, "/api/v1/drives/" + sick41: 404} {
		if got := eval[int](r, fmt.Sprintf("fetch(%q).then((r) => r.status)", path)); got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
	const act = `fetch("/ui/actions", { method: "POST", headers: { "Content-Type": "application/json", "X-Drivebay-Token": sessionStorage.getItem("token") }, body: JSON.stringify({ do: "cordon", on: true, drive: %q, bay: "Slot 08", serial: "ZL204108" }) }).then((r) => r.status)`
	if got := eval[int](r, fmt.Sprintf(act, sick41)); got != 403 {
		t.Errorf("an action: %d", got)
	}
	out, err := exec.Command(program, "cordon", sick41, "--api=unix://"+r.dir+"/s").CombinedOutput()
	if err == nil {
		t.Errorf("the socket of the page takes commands: %s", out)
	}
	r.stop()
	r.shows("#notice", "Connection lost")
	r.calm()
}

// What drives and nodes say of themselves is text.
func TestClusterMarkup(t *testing.T) {
	r, api := startCluster(t)
	const evil = `<img src=x onerror="document.title='owned'">`
	api.put("drives", drive(1, 1, func(s object) {
		finding("BAD", "Evil", evil, evil)(s)
		s["identity"].(object)["serial"], s["identity"].(object)["model"], s["bay"].(object)["enclosure"] = evil, evil, evil
		s["machine"].(object)["product"] = evil
	}))
	r.open(390, 844)
	r.scheme("light")
	r.find("node:storage-1 onerror")
	r.shows("#found", "1 of 5,000")
	r.click("#view-list")
	r.shows(".list", "<img src=x")
	r.click(`.list button[data-drive="naa-5000c50000010001.storage-1"]`)
	r.shows("#drive", evil)
	if wide := eval[int](r, "document.documentElement.scrollWidth"); wide > 390 {
		t.Errorf("the page is %d pixels wide", wide)
	}
	if n := eval[int](r, "document.querySelectorAll('#main img').length"); n != 0 || strings.Contains(eval[string](r, "document.title"), "owned") {
		t.Error("a string of a drive became markup")
	}
	r.calm()
}
