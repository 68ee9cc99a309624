//go:build kube

package apisuite

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
)

// visitor is a browser that has opened the page of a cluster.
type visitor struct{ address, link, cookie, token string }

// pageHead is what the tests read of the head of the page.
type pageHead struct {
	Ready bool
	Away  *struct {
		Heard   time.Time
		Why     string
		Refused bool
	}
	Nodes []string
}

// pageNode is what the tests read of a node on the page.
type pageNode struct {
	Name, Down string
	Enclosures []struct {
		Drives []struct {
			ID      string
			Volumes []string
		}
	}
}

func (n pageNode) drives() (count int) {
	for _, e := range n.Enclosures {
		count += len(e.Drives)
	}
	return count
}

// visit runs a command that serves the page until the end of the test, and opens the link that it prints.
func visit(t *testing.T, cmd *exec.Cmd) *visitor {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	v := &visitor{}
	for lines := bufio.NewScanner(out); v.link == "" && lines.Scan(); {
		v.address, v.link, _ = strings.Cut(strings.TrimSpace(lines.Text()), "/ui/open.html#")
	}
	resp := v.ask(t, http.MethodPost, "/ui/session", "", "X-Drivebay-Token", v.link)
	var opened struct{ Token string }
	if err := json.NewDecoder(resp.Body).Decode(&opened); err != nil || len(resp.Cookies()) != 1 {
		t.Fatalf("the link of the page does not open it: %s, %v", resp.Status, err)
	}
	v.cookie, v.token = resp.Cookies()[0].Name+"="+resp.Cookies()[0].Value, opened.Token
	return v
}

// ask sends a request as the page does. Headers are names and values.
func (v *visitor) ask(t *testing.T, method, path, body string, headers ...string) *http.Response {
	t.Helper()
	return send(t, http.DefaultClient, method, v.address+path, body, append([]string{"Origin", v.address, "Cookie", v.cookie}, headers...)...)
}

func send(t *testing.T, client *http.Client, method, url, body string, headers ...string) *http.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] != "" {
			req.Header.Set(headers[i], headers[i+1])
		}
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// state returns what the page shows once the drives are listed, or cannot be.
func (v *visitor) state(t *testing.T) (head pageHead, nodes map[string]pageNode) {
	t.Helper()
	resp := v.ask(t, http.MethodGet, "/ui/state", "")
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("the stream of the page: %s", resp.Status)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	nodes = map[string]pageNode{}
	for part := false; lines.Scan(); {
		body, data := strings.CutPrefix(lines.Text(), "data: ")
		switch {
		case lines.Text() == "event: part":
			part = true
		case data && part:
			var n pageNode
			if err := json.Unmarshal([]byte(body), &n); err != nil {
				t.Fatal(err)
			}
			nodes[n.Name], part = n, false
		case data:
			head = pageHead{}
			if err := json.Unmarshal([]byte(body), &head); err != nil {
				t.Fatal(err)
			}
			if head.Ready || head.Away != nil {
				return head, nodes
			}
		}
	}
	t.Fatalf("the page says only that the drives are being listed: %v", lines.Err())
	return head, nodes
}

// refuses waits until the page says that the API server refuses its requests, and why.
func (v *visitor) refuses(t *testing.T, why string, ready bool) {
	t.Helper()
	Eventually(t, time.Minute, "the page says that it is refused", func() string {
		head, nodes := v.state(t)
		if head.Away == nil || !head.Away.Refused || !strings.Contains(head.Away.Why, why) || head.Ready != ready || ready && nodes["rack24"].drives() != 24 {
			return fmt.Sprintf("%+v %+v", head, head.Away)
		}
		return ""
	})
}

// shows waits until the page shows all drives as they are now.
func (v *visitor) shows(t *testing.T) {
	t.Helper()
	Eventually(t, time.Minute, "the page shows the drives", func() string {
		if head, nodes := v.state(t); head.Away != nil || nodes["rack24"].drives() != 24 || nodes["rack24"].Down != "" {
			return fmt.Sprintf("%+v %+v: %d drives, %s", head, head.Away, nodes["rack24"].drives(), nodes["rack24"].Down)
		}
		return ""
	})
}

// installWith installs what the chart renders with some values, in place of what it rendered before.
func (a *API) installWith(t *testing.T, values string) {
	t.Helper()
	chart := exec.CommandContext(t.Context(), "go", "run", ".", a.write(t, "values.yaml", values))
	chart.Dir = filepath.Join(a.Root, "hack/chart")
	var errs strings.Builder
	chart.Stderr = &errs
	objects, err := chart.Output()
	if err != nil {
		t.Fatalf("render the chart: %v: %s", err, errs.String())
	}
	a.Kubectl(t, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"drivebay"}}`, "apply", "-f", "-")
	a.Kubectl(t, string(objects), "apply", "--server-side", "--force-conflicts", "--namespace", "drivebay", "-f", "-")
}

// containerArgs returns the arguments of a container of the controller's pods, as the chart has them.
func (a *API) containerArgs(t *testing.T, container string) (args []string) {
	t.Helper()
	text := a.Kubectl(t, "", "--namespace", chartNamespace, "get", "deployment", "drivebay-controller", "--output", `jsonpath={.spec.template.spec.containers[?(@.name=="`+container+`")].args}`)
	if err := json.Unmarshal([]byte(text), &args); err != nil {
		t.Fatalf("container %s: %s: %v", container, text, err)
	}
	return args
}

// The values of the chart with which a controller serves the page, and does not.
const page, noPage = "controller: {enabled: true, page: true}\n", "controller: {enabled: true, page: false}\n"

// TestKubeControllerPage: the controller serves the page with the ServiceAccount of the chart. The page shows the drives of
// the cluster, changes nothing, and says so when the API server refuses its requests.
func TestKubeControllerPage(t *testing.T) {
	a := Up(t)
	a.installWith(t, page)
	d := a.Daemon(t, "rack24", filepath.Join(a.Root, "examples/rack24.yaml"), a.Node(t, "rack24"), "--claim", "all", "--kubernetes-namespace", "drivebay", "--role", "node")
	mirrored(t, a, d)
	d.CLI(t, "volume", "create", "data-1", "--size", "2GiB")
	var set drivebay.VolumeSet
	if err := json.Unmarshal([]byte(d.CLI(t, "volumes", "-o", "json")), &set); err != nil || len(set.Volumes) != 1 {
		t.Fatalf("%+v, %v", set, err)
	}
	drive := set.Volumes[0].Location.Drives[0] + ".rack24"

	// The arguments are those of the chart, but for what a pod has: its account, its namespace and its folders.
	args := a.containerArgs(t, "drivebay")
	if !slices.Contains(args, "--kubernetes-page") || !slices.Contains(args, "--role=controller") {
		t.Fatal(args)
	}
	args = slices.DeleteFunc(args, func(arg string) bool {
		return arg == "serve" || strings.HasPrefix(arg, "--role") || strings.HasPrefix(arg, "--csi-endpoint")
	})
	socket := filepath.Join(t.TempDir(), "page.sock")
	args = append(args, "--api", "unix://"+socket, "--kubernetes-namespace", "drivebay")
	account := a.WriteKubeconfig(t, "controller", strings.TrimSpace(a.Kubectl(t, "", "--namespace", "drivebay", "create", "token", "drivebay-controller")))
	controller := a.controllerProcessAs(t, account, args...)
	Eventually(t, time.Minute, "the controller leads", func() string { return controller.ready(t) })
	v := visit(t, exec.Command(a.file("drivebay"), "ui", "--api", "unix://"+socket))

	p := &servedPage{a, d, v, controller, args, account, socket, drive}
	t.Run("shows", p.shows)
	t.Run("changes nothing", p.changesNothing)
	t.Run("opens once", p.opensOnce)
	t.Run("refused", p.refused)
}

// servedPage is the page of a controller with the account of the chart, as a person sees it who has opened the link.
type servedPage struct {
	a                      *API
	d                      *Daemon
	v                      *visitor
	controller             *controllerProcess
	args                   []string
	account, socket, drive string
}

func (p *servedPage) shows(t *testing.T) {
	a, v, drive := p.a, p.v, p.drive
	v.shows(t)
	Eventually(t, 20*time.Second, "the drive has its volume", func() string {
		_, nodes := v.state(t)
		for _, e := range nodes["rack24"].Enclosures {
			for _, row := range e.Drives {
				if row.ID == drive && slices.Contains(row.Volumes, "data-1") {
					return ""
				}
			}
		}
		return fmt.Sprintf("%+v", nodes)
	})
	body, err := io.ReadAll(v.ask(t, http.MethodGet, "/ui/drives/"+drive, "").Body)
	var detail struct {
		Node, Down string
		Volumes    []struct{ Name string }
		Commands   []struct{ Command string }
	}
	if err != nil || json.Unmarshal(body, &detail) != nil || detail.Node != "rack24" || detail.Down != "" || len(detail.Volumes) != 1 || detail.Volumes[0].Name != "data-1" {
		t.Errorf("the drive: %s, %v", body, err)
	}
	for _, command := range []string{"kubectl drivebay replace " + drive, "kubectl drivebay cordon " + drive, "kubectl drivebay locate " + drive + " on"} {
		if !strings.Contains(string(body), command) {
			t.Errorf("the drive has no command %q: %s", command, body)
		}
	}
	// A person with rights of their own runs it as it is shown.
	a.ran(t, a.Kubeconfig, strings.Fields("cordon "+drive), "cordon")
	Eventually(t, 10*time.Second, "the page shows the cordon", func() string {
		body, err := io.ReadAll(v.ask(t, http.MethodGet, "/ui/drives/"+drive, "").Body)
		if err != nil || !strings.Contains(string(body), "kubectl drivebay uncordon "+drive) {
			return string(body)
		}
		return ""
	})
}

func (p *servedPage) changesNothing(t *testing.T) {
	a, d, v, account, socket, drive := p.a, p.d, p.v, p.account, p.socket, p.drive
	began := time.Now()
	direct := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	seen, _ := d.Snapshot(t).Get(strings.TrimSuffix(drive, ".rack24"))
	action := func(do string, on bool) string {
		return fmt.Sprintf(`{"do":%q,"on":%v,"drive":%q,"bay":%q,"serial":%q}`, do, on, drive, seen.Slot.Bay, seen.Serial)
	}
	for _, body := range []string{action("cordon", true), action("cordon", false), action("claim", false), action("locate", true), action("release", true), action("approve", true), action("accept", true), action("cancel", true)} {
		for what, resp := range map[string]*http.Response{
			"the page":   v.ask(t, http.MethodPost, "/ui/actions", body, "Content-Type", "application/json", "X-Drivebay-Token", v.token),
			"the socket": send(t, direct, http.MethodPost, "http://drivebay/ui/actions", body, "Content-Type", "application/json"),
		} {
			if text, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusForbidden || !strings.Contains(string(text), "only reads") {
				t.Errorf("%s: %s: %s %s", what, body, resp.Status, text)
			}
		}
	}
	for _, path := range []string{"/api/v1/drives", "/api/v1/drives/" + drive, "/api/v1/volumes", "/metrics", "/debug/pprof/"} {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete} {
			if resp := send(t, direct, method, "http://drivebay"+path, ""); resp.StatusCode != http.StatusNotFound {
				t.Errorf("the socket: %s %s: %s", method, path, resp.Status)
			}
		}
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		if resp := send(t, direct, method, "http://drivebay/ui/drives/"+drive, ""); resp.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("the socket: %s of a drive: %s", method, resp.Status)
		}
	}
	out, err := exec.Command(a.file("drivebay"), "cordon", drive, "--api", "unix://"+socket).CombinedOutput()
	if err == nil {
		t.Errorf("the socket takes commands: %s", out)
	}
	// Who has the token of the account writes no Drive with it.
	for _, resource := range []string{"drives.drivebay.io", "drives.drivebay.io/status"} {
		for _, verb := range []string{"create", "update", "patch", "delete", "deletecollection"} {
			if out := a.Refused(t, account, "", "auth", "can-i", verb, resource); !strings.Contains(out, "exit status 1") {
				t.Errorf("%s %s: %s", verb, resource, out)
			}
		}
	}
	if out := a.Refused(t, account, "", "patch", "drives.drivebay.io", drive, "--type=merge", "-p", `{"spec":{"cordoned":false}}`); !strings.Contains(out, "forbidden") {
		t.Error(out)
	}
	for _, w := range a.Writes(t, "drives", "", began) {
		if strings.Contains(w.User.Username, "drivebay-controller") && w.ResponseStatus.Code < 300 {
			t.Errorf("the controller writes: %+v", w)
		}
	}
	if seen, _ := d.Snapshot(t).Get(strings.TrimSuffix(drive, ".rack24")); !seen.Cordoned || seen.Slot.Lit || seen.Usage != drivebay.UsageInUse {
		t.Errorf("the drive: %+v", seen)
	}
}

func (p *servedPage) opensOnce(t *testing.T) {
	v, drive := p.v, p.drive
	stranger := &visitor{address: v.address}
	for what, resp := range map[string]*http.Response{
		"the link again":   stranger.ask(t, http.MethodPost, "/ui/session", "", "X-Drivebay-Token", v.link),
		"no link":          stranger.ask(t, http.MethodGet, "/ui/state", ""),
		"a drive, no link": stranger.ask(t, http.MethodGet, "/ui/drives/"+drive, ""),
	} {
		if resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: %s", what, resp.Status)
		}
	}
}

// refused takes the rights of the account away, gives them back, and ends its token.
func (p *servedPage) refused(t *testing.T) {
	a, v, controller, args, account, drive := p.a, p.v, p.controller, p.args, p.account, p.drive
	a.installWith(t, noPage)
	a.Stop() // which ends the requests that follow the objects
	a.Start(t)
	v.refuses(t, `cannot list resource "drives"`, true)
	Eventually(t, time.Minute, "the controller leads", func() string { return controller.ready(t) })
	controller.program.kill()
	controller = a.controllerProcessAs(t, account, args...)
	Eventually(t, time.Minute, "the next controller leads", func() string { return controller.ready(t) })
	v.refuses(t, `cannot list resource "drives"`, false)
	a.installWith(t, page)
	v.shows(t)

	// Without a token that the API server accepts. A controller that has led ends then; the next one waits.
	a.Kubectl(t, "", "--namespace", "drivebay", "delete", "serviceaccount", "drivebay-controller")
	Eventually(t, time.Minute, "the token is not accepted", func() string {
		if out, err := a.kubectl(t.Context(), "", "--kubeconfig", account, "get", "volumes.drivebay.io"); err == nil || !strings.Contains(err.Error(), "must be logged in") {
			return fmt.Sprint(out, err)
		}
		return ""
	})
	controller.program.kill()
	controller = a.controllerProcessAs(t, account, args...)
	Eventually(t, time.Minute, "the next controller serves the page", func() string {
		if resp := v.ask(t, http.MethodGet, "/ui/drives/"+drive, ""); resp.StatusCode != http.StatusNotFound {
			return resp.Status
		}
		return ""
	})
	v.refuses(t, "Unauthorized", false)
}
