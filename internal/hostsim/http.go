package hostsim

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/drivebay/drivebay/internal/hostsim/internal/block"
	"github.com/drivebay/drivebay/internal/hostsim/internal/faults"
	"github.com/drivebay/drivebay/internal/hostsim/internal/model"
)

// DriveView is a drive as GET /sim/v1/drives shows it.
type DriveView struct {
	Bay       string           `json:"bay,omitempty"`
	Enclosure string           `json:"enclosure,omitempty"`
	Name      string           `json:"name,omitempty"` // kernel name, while it is present
	Kind      model.Kind       `json:"kind"`
	Vendor    string           `json:"vendor,omitempty"`
	Model     string           `json:"model"`
	Serial    string           `json:"serial"`
	Size      uint64           `json:"size"`
	Present   bool             `json:"present"`
	System    bool             `json:"system,omitempty"`
	Content   string           `json:"content"`
	Faults    []string         `json:"faults,omitempty"` // what is wrong now
	Stats     block.DriveStats `json:"stats"`
}

// View lists the drives, pulled drives included.
func (m *Machine) View() []DriveView {
	stats := m.Stats()
	m.kernel.Mu.RLock()
	defer m.kernel.Mu.RUnlock()
	list := []DriveView{}
	for i, d := range m.devices.Drives {
		v := DriveView{Kind: d.Kind.Name, Vendor: d.Vendor, Model: d.Model, Serial: d.Serial, Size: d.Size,
			Present: d.Present, System: d.System, Content: d.Content.Sort(), Faults: m.faults.Troubles(d), Stats: stats.Drives[i]}
		if d.Present {
			v.Name = d.Name
		}
		if d.Bay != nil {
			v.Bay, v.Enclosure = d.Label(), d.Bay.Row.Name
		}
		list = append(list, v)
	}
	return list
}

// maxBody limits the size of a request.
const maxBody = 64 << 10

// Handler serves GET /sim/v1/drives, GET and POST /sim/v1/faults.
func (m *Machine) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /sim/v1/drives", func(w http.ResponseWriter, r *http.Request) { answer(w, http.StatusOK, m.View()) })
	mux.HandleFunc("GET /sim/v1/faults", func(w http.ResponseWriter, r *http.Request) { answer(w, http.StatusOK, faults.FaultNames()) })
	mux.HandleFunc("POST /sim/v1/faults", func(w http.ResponseWriter, r *http.Request) {
		var f faults.Fault
		dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
		dec.DisallowUnknownFields()
		err := dec.Decode(&f)
		if err == nil && !errors.Is(dec.Decode(new(any)), io.EOF) {
			err = errors.New("more than one JSON value")
		}
		if err == nil {
			err = m.Inject(f)
		}
		if err != nil {
			answer(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
			return
		}
		answer(w, http.StatusOK, f)
	})
	return mux
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	// An error here means that the client is gone.
	_ = enc.Encode(v)
}
