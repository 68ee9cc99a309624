package api

import (
	"context"
	"fmt"
	"net/http"

	"github.com/drivebay/drivebay"
)

// DriveHistory is what was measured of a drive, oldest first.
type DriveHistory struct {
	Drive  string                  `json:"drive"`
	Points []drivebay.HistoryPoint `json:"points"`
}

func (s driveHandlers) history(w http.ResponseWriter, r *http.Request) error {
	if s.opt.History == nil {
		return fmt.Errorf("history: %w", drivebay.ErrNoSupport)
	}
	d, err := s.find(r)
	if err != nil {
		return err
	}
	points, err := s.opt.History(d.ID)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, DriveHistory{d.ID, append([]drivebay.HistoryPoint{}, points...)})
	return nil
}

// History returns what was measured of a drive in the last 90 days.
func (c *Client) History(ctx context.Context, drive string) (DriveHistory, error) {
	return get[DriveHistory](ctx, c, drivePath(drive, "/history"), nil)
}
