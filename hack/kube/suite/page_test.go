//go:build kube

package suite

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestKubePage opens the page of the cluster by the commands of docs/kubernetes.md, in a terminal: it shows the drives of the
// node, its link opens once, it changes nothing, and it ends at ctrl-c.
func TestKubePage(t *testing.T) {
	commands := guide(t, "## The page of the cluster")
	if len(commands) != 3 {
		t.Fatalf("the section has the commands %q", commands)
	}
	pods := strings.Split(strings.TrimSpace(shell(t, commands[0])), "\n")
	pod := strings.Fields(pods[len(pods)-1])[0] // a controller serves the page whether it leads or not
	command := func(i int) string { return strings.Replace(commands[i], "POD", pod, 1) }

	// The line as a reader types it: script makes a terminal for it.
	ui := lab.Shell(t.Context(), "exec script --quiet --flush --return --command '"+command(1)+"' /dev/null")
	keys, err := ui.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	_, link := started(t, ui, "/ui/open.html#")
	forward := lab.Shell(t.Context(), "exec "+command(2))
	started(t, forward, "Forwarding from 127.0.0.1:7411")

	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{DialContext: lab.Dial}}
	const address = "http://127.0.0.1:7411"
	ask := func(method, path string, headers ...string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, address+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Origin", address)
		for i := 0; i < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	const token = "X-Drivebay-Token"
	opened := ask(http.MethodPost, "/ui/session", token, link)
	var session struct{ Token string }
	if err := json.NewDecoder(opened.Body).Decode(&session); err != nil || len(opened.Cookies()) != 1 {
		t.Fatalf("the link does not open the page: %s, %v", opened.Status, err)
	}
	cookie := opened.Cookies()[0].Name + "=" + opened.Cookies()[0].Value
	if again := ask(http.MethodPost, "/ui/session", token, link); again.StatusCode != http.StatusUnauthorized {
		t.Errorf("the link again: %s", again.Status)
	}
	if resp := ask(http.MethodGet, "/ui/state"); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("without the link: %s", resp.Status)
	}
	stream := bufio.NewScanner(ask(http.MethodGet, "/ui/state", "Cookie", cookie).Body)
	stream.Buffer(nil, 1<<20)
	for shown := false; !shown && stream.Scan(); {
		body, data := strings.CutPrefix(stream.Text(), "data: ")
		var node struct {
			Name       string
			Enclosures []struct{ Drives []struct{ ID string } }
		}
		if !data || json.Unmarshal([]byte(body), &node) != nil || node.Name != "node1" {
			continue
		}
		count := 0
		for _, e := range node.Enclosures {
			count += len(e.Drives)
		}
		if shown = true; count != len(drives(t)) {
			t.Errorf("the page shows %d drives: %s", count, body)
		}
	}
	if err := stream.Err(); err != nil {
		t.Errorf("the stream of the page: %v", err)
	}
	if resp := ask(http.MethodPost, "/ui/actions", "Cookie", cookie, "Content-Type", "application/json", token, session.Token); resp.StatusCode != http.StatusForbidden {
		t.Errorf("an action: %s", resp.Status)
	}

	if _, err := keys.Write([]byte{3}); err != nil { // ctrl-c
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, func() string {
		if resp, err := client.Get(address + "/ui/"); err == nil {
			resp.Body.Close()
			return "after ctrl-c the page answers: " + resp.Status
		}
		return ""
	})
}

// started starts a command that runs until the test ends, and waits until it prints a line with some text. It returns what is
// before and after the text on that line.
func started(t *testing.T, cmd *exec.Cmd, text string) (before, after string) {
	t.Helper()
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended, read := make(chan struct{}), make(chan struct{})
	go func() { t.Logf("%s: %v", cmd.Args[len(cmd.Args)-1], cmd.Wait()); in.Close(); close(ended) }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); out.Close(); <-ended; <-read })
	var all strings.Builder
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		all.WriteString(lines.Text() + "\n")
		var found bool
		if before, after, found = strings.Cut(strings.TrimSpace(lines.Text()), text); found {
			go func() { // what it says later belongs to the test's log
				defer close(read)
				for lines.Scan() {
					t.Logf("%s: %s", cmd.Args[len(cmd.Args)-1], lines.Text())
				}
			}()
			return before, after
		}
	}
	close(read)
	t.Fatalf("%s ended: %s", cmd, all.String())
	return "", ""
}
