package apisuite

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"
)

// A Write is a request that changed an object of drivebay, as the API server has logged it.
type Write struct {
	Verb      string
	User      struct{ Username string }
	UserAgent string
	ObjectRef struct{ Resource, Name, Subresource string }

	ResponseStatus           struct{ Code int }
	RequestReceivedTimestamp time.Time
}

// Writes returns the requests to objects of a resource since a time, by clients whose user agent begins with a text.
func (a *API) Writes(t *testing.T, resource, agent string, since time.Time) (out []Write) {
	t.Helper()
	f, err := os.Open(a.file("audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var w Write
		if err := json.Unmarshal(lines.Bytes(), &w); err != nil {
			continue // the line is being written
		}
		if w.ObjectRef.Resource == resource && strings.HasPrefix(w.UserAgent, agent) && w.RequestReceivedTimestamp.After(since) {
			out = append(out, w)
		}
	}
	return out
}
