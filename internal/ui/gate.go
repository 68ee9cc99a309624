package ui

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// linkTime is how long a link can be opened.
const linkTime = 10 * time.Minute

// Gate stands between a browser and the page. Only who opens the one-time link gets in:
//
//   - The link carries its token in the fragment, which a browser sends to no server and puts into no
//     Referer. A script of the page exchanges it, once, for a cookie (HttpOnly, SameSite=Strict) and for a
//     token for actions, which stays in the tab.
//   - A request for another host is refused: no other name resolves to this address (DNS rebinding).
//   - A request from another origin is refused, and an action needs the token, which no other origin and no
//     other port can read (CSRF).
type Gate struct {
	host    string // "127.0.0.1:40123"
	command string // that prints the link
	now     func() time.Time

	mu      sync.Mutex
	link    string // "": it was opened
	until   time.Time
	session string
	action  string
	cookie  string
	next    http.Handler
}

// NewGate returns a gate for an address of this machine, before the handler that answers. command is what a person runs for
// another link.
func NewGate(host, command string, now func() time.Time, next http.Handler) *Gate {
	_, port, _ := net.SplitHostPort(host)
	return &Gate{host: host, command: command, now: now, link: rand.Text(), until: now().Add(linkTime), session: rand.Text(), action: rand.Text(), cookie: "drivebay-" + port, next: next}
}

// Link returns the link that opens the page, once.
func (g *Gate) Link() string { return "http://" + g.host + "/ui/open.html#" + g.link }

// actionHeader carries the token for actions. A request of another origin cannot set it without a preflight,
// which nothing answers.
const actionHeader = "X-Drivebay-Token"

func equal(a, b string) bool { return b != "" && subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// ServeHTTP refuses a request, or passes it on.
func (g *Gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	changes := r.Method != http.MethodGet && r.Method != http.MethodHead
	origin := r.Header.Get("Origin")
	from := r.Header.Get("Sec-Fetch-Site")
	switch {
	case r.Host != g.host:
		refuse(w, http.StatusMisdirectedRequest, "this address is only for http://"+g.host)
	case origin != "" && origin != "http://"+g.host, changes && origin == "", from == "cross-site" || from == "same-site":
		refuse(w, http.StatusForbidden, "the request comes from another origin")
	case r.URL.Path == "/":
		secure(w.Header())
		http.Redirect(w, r, "/ui/", http.StatusSeeOther)
	case r.URL.Path == "/ui/session" && r.Method == http.MethodPost:
		g.open(w, r)
	case g.isFile(r) && !changes:
		serveFile(w, r, strings.TrimPrefix(r.URL.Path, "/ui/"))
	case !g.known(r):
		refuse(w, http.StatusUnauthorized, "run `"+g.command+"` and open the link that it prints")
	case changes && (r.URL.Path != "/ui/actions" || r.Method != http.MethodPost):
		refuse(w, http.StatusForbidden, "the page has no such action")
	case changes && !equal(r.Header.Get(actionHeader), g.action):
		refuse(w, http.StatusForbidden, "this tab may only read: run `"+g.command+"` and open the link that it prints")
	case !strings.HasPrefix(r.URL.Path, "/ui/") && !strings.HasPrefix(r.URL.Path, "/api/v1/drives/"):
		refuse(w, http.StatusNotFound, "nothing is served there")
	default:
		r.Header.Del("Cookie")
		r.Header.Del(actionHeader)
		g.next.ServeHTTP(w, r)
	}
}

// isFile reports whether a request is for a file of the page, which says nothing about the machine.
func (g *Gate) isFile(r *http.Request) bool {
	name, ok := strings.CutPrefix(r.URL.Path, "/ui/")
	_, known := files()[name]
	return ok && (name == "" || known)
}

func (g *Gate) known(r *http.Request) bool {
	c, err := r.Cookie(g.cookie)
	return err == nil && equal(c.Value, g.session)
}

// open exchanges the token of the link, once.
func (g *Gate) open(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !equal(r.Header.Get(actionHeader), g.link) || g.now().After(g.until) {
		refuse(w, http.StatusUnauthorized, "the link was opened before, or is too old: run `"+g.command+"` again")
		return
	}
	g.link = ""
	http.SetCookie(w, &http.Cookie{Name: g.cookie, Value: g.session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	secure(w.Header())
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{"token": g.action})
}
