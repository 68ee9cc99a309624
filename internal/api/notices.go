package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/drivebay/drivebay"
)

// Trial is what became of a trial notice.
type Trial struct {
	Results []TrialResult `json:"results"` // one for each sink that is configured
}

// TrialResult is what became of a trial notice at one sink.
type TrialResult struct {
	Sink    string  `json:"sink"`            // webhook or command
	Error   string  `json:"error,omitempty"` // why it was not delivered
	Seconds float64 `json:"seconds"`         // how long the delivery took
}

func (s *Server) trial(w http.ResponseWriter, r *http.Request) error {
	var body struct{}
	if err := readBody(r, &body); err != nil {
		return err
	}
	if s.opt.Trial == nil {
		return fmt.Errorf("notices: %w: neither notify.webhook nor notify.command is set", drivebay.ErrNoSupport)
	}
	ctx, cancel := context.WithTimeout(r.Context(), opTimeout)
	defer cancel()
	writeJSON(w, http.StatusOK, Trial{s.opt.Trial(ctx)})
	return nil
}

// Trial makes the daemon send a trial notice to every sink.
func (c *Client) Trial(ctx context.Context) (Trial, error) {
	body, err := json.Marshal(struct{}{})
	if err != nil {
		return Trial{}, err
	}
	answer, err := c.do(ctx, http.MethodPost, "/api/v1/notify/trial", body)
	if err != nil {
		return Trial{}, err
	}
	return decode[Trial](c, answer)
}
