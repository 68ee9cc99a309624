// Package apisuite runs tests against a real API server of Kubernetes: etcd and kube-apiserver as programs on this
// machine, without nodes. The CRDs of the chart are installed.
package apisuite

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/drivebay/drivebay/hack/kube/cluster"
)

const (
	adminToken = "administrator-of-the-tests"
	startTime  = 2 * time.Minute
)

// API is a running API server.
type API struct {
	Kubeconfig string // of the administrator
	Root       string // of the checkout

	t          *testing.T // whose end ends all programs
	dir, hyper string
	etcd, url  string // addresses
	server     *program
}

// Up starts an API server that ends with the test.
func Up(t *testing.T) *API {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err == nil {
		err = cluster.BuildPrograms(t.Context(), root)
	}
	if err != nil {
		t.Fatal(err)
	}
	a := &API{Root: root, t: t, dir: t.TempDir(), hyper: filepath.Join(root, ".cache/kube/bin/hyper")}
	a.etcd, a.url = "http://"+freeAddress(t), "https://"+freeAddress(t)
	a.Kubeconfig = a.file("admin.kubeconfig")
	peer := "http://" + freeAddress(t)
	a.start(t, "etcd", "--data-dir", a.file("etcd"), "--listen-client-urls", a.etcd, "--advertise-client-urls", a.etcd,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer, "--unsafe-no-fsync")
	a.writeFiles(t)
	a.Start(t)
	a.Kubectl(t, "", "apply", "--server-side", "-f", filepath.Join(root, "deploy/chart/drivebay/crds"))
	a.Kubectl(t, "", "wait", "--for=condition=Established", "--timeout=30s", "crd", "--all")
	return a
}

// Start starts the API server after Stop.
func (a *API) Start(t *testing.T) {
	t.Helper()
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(a.url, "https://"))
	a.server = a.start(t, "kube-apiserver", "--etcd-servers", a.etcd, "--bind-address", "127.0.0.1", "--secure-port", port, "--cert-dir", a.file("certs"),
		"--service-cluster-ip-range", "10.96.0.0/24", "--authorization-mode", "RBAC", "--allow-privileged", "--token-auth-file", a.file("tokens"), "--endpoint-reconciler-type", "none",
		"--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", a.file("accounts.key"), "--service-account-signing-key-file", a.file("accounts.key"),
		"--audit-policy-file", a.file("audit.yaml"), "--audit-log-path", a.file("audit.log"))
	limit := time.Now().Add(startTime)
	for {
		out, err := a.kubectl(t.Context(), "", "get", "--raw", "/readyz")
		if err == nil {
			return
		}
		select {
		case <-a.server.ended:
			t.Fatalf("kube-apiserver ended:\n%s", a.server.tail())
		case <-time.After(100 * time.Millisecond):
		}
		if time.Now().After(limit) {
			t.Fatalf("kube-apiserver is not ready: %s\n%s", out, a.server.tail())
		}
	}
}

// Stop kills the API server. Its connections are reset, as when its machine fails.
func (a *API) Stop() { a.server.kill() }

// Freeze stops the threads of the API server until Thaw: it takes connections and answers none.
func (a *API) Freeze(t *testing.T) { a.server.signal(t, syscall.SIGSTOP) }

// Thaw ends Freeze.
func (a *API) Thaw(t *testing.T) { a.server.signal(t, syscall.SIGCONT) }

// Config is the connection of the administrator.
func (a *API) Config() *rest.Config { return a.As(adminToken) }

// As is the connection of the user of a token.
func (a *API) As(token string) *rest.Config {
	return &rest.Config{Host: a.url, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAFile: a.file("certs/apiserver.crt")}, QPS: -1}
}

// Kubectl runs kubectl as the administrator and returns what it printed.
func (a *API) Kubectl(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	out, err := a.kubectl(t.Context(), stdin, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Refused runs kubectl as a user, which has to fail, and returns the error that it printed. An empty kubeconfig is that of
// the administrator.
func (a *API) Refused(t *testing.T, kubeconfig, stdin string, args ...string) string {
	t.Helper()
	if kubeconfig != "" {
		args = append([]string{"--kubeconfig", kubeconfig}, args...)
	}
	out, err := a.kubectl(t.Context(), stdin, args...)
	if err == nil {
		t.Fatalf("kubectl %s was not refused: %s", strings.Join(args, " "), out)
	}
	return err.Error()
}

func (a *API) kubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, a.hyper, append([]string{"kubectl", "--kubeconfig", a.Kubeconfig}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+a.dir) // the cache of the kinds of objects
	cmd.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, errs.String())
	}
	return out.String(), nil
}

// Install installs what the chart renders with its default values. No controller runs: no pod is made.
func (a *API) Install(t *testing.T) {
	t.Helper()
	a.Kubectl(t, "", "apply", "--server-side", "--force-conflicts", "-f", filepath.Join(a.Root, "deploy/manifests/drivebay.yaml"))
}

// Node makes a node with a pod of the DaemonSet on it, after Install, and returns the kubeconfig of that pod.
func (a *API) Node(t *testing.T, name string) string {
	t.Helper()
	a.Kubectl(t, fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","metadata":{"name":%q}}`, name), "apply", "-f", "-")
	a.Kubectl(t, fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"namespace":"drivebay"},"spec":{"nodeName":%q,"serviceAccountName":"drivebay","containers":[{"name":"drivebay","image":"drivebay"}]}}`,
		"drivebay-"+name, name), "apply", "-f", "-")
	token := a.Kubectl(t, "", "--namespace", "drivebay", "create", "token", "drivebay", "--bound-object-kind", "Pod", "--bound-object-name", "drivebay-"+name)
	return a.WriteKubeconfig(t, "node-"+name, strings.TrimSpace(token))
}

func (a *API) file(name string) string { return filepath.Join(a.dir, name) }

// auditPolicy records each request that changes objects of drivebay or Events, and no bodies.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
  resources: [{group: drivebay.io}, {group: events.k8s.io}]
- level: None
`

func (a *API) writeFiles(t *testing.T) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	private := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	a.write(t, "accounts.key", string(private))
	a.write(t, "audit.yaml", auditPolicy)
	a.write(t, "tokens", adminToken+",admin,admin,system:masters\n")
	a.Kubeconfig = a.WriteKubeconfig(t, "admin", adminToken)
}

// WriteKubeconfig writes the file by which the user of a token connects.
func (a *API) WriteKubeconfig(t *testing.T, user, token string) string {
	t.Helper()
	return a.write(t, user+".kubeconfig", fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: tests, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: %[3]s, user: {token: %q}}]
contexts: [{name: tests, context: {cluster: tests, user: %[3]s}}]
current-context: tests
`, a.url, a.file("certs/apiserver.crt"), user, token))
}

func (a *API) write(t *testing.T, name, content string) string {
	t.Helper()
	if err := os.WriteFile(a.file(name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return a.file(name)
}

// program is a program that runs beside the test.
type program struct {
	cmd   *exec.Cmd
	log   string
	ended chan struct{}
}

// start starts a component of Kubernetes.
func (a *API) start(t *testing.T, args ...string) *program {
	t.Helper()
	return a.startProgram(t, a.hyper, a.file(args[0]+".log"), args...)
}

func (a *API) startProgram(t *testing.T, name, logFile string, args ...string) *program {
	t.Helper()
	p := &program{cmd: exec.Command(name, args...), log: logFile, ended: make(chan struct{})}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // it is killed
		close(p.ended)
	}()
	a.t.Cleanup(p.kill) // not of a subtest that starts a program again
	return p
}

func (p *program) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
}

func (p *program) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

func (p *program) tail() string {
	text, _ := os.ReadFile(p.log)
	return string(text[max(0, len(text)-4000):])
}

// freeAddress returns an address at which nothing listens now.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
