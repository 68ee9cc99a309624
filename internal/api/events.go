package api

import (
	"net/http"

	"github.com/drivebay/drivebay"
)

// EventList holds consecutive events, oldest first. Last is the number to continue from.
type EventList struct {
	Last   uint64           `json:"last"`
	Events []drivebay.Event `json:"events"`
}

func (s *Server) events(w http.ResponseWriter, r *http.Request) error {
	after, wait, err := waitOf(r)
	if err != nil {
		return err
	}
	limit, err := number(r, "limit", fewEvents)
	if err != nil {
		return err
	}
	limit = min(limit, maxEvents)
	events := s.engine.Events(after, int(limit))
	if len(events) == 0 && wait > 0 {
		ctx, cancel := s.patience(r, wait)
		defer cancel()
		if _, err := s.engine.WaitEvents(ctx, after); err != nil && ctx.Err() == nil {
			return err
		}
		events = s.engine.Events(after, int(limit))
	}
	list := EventList{Last: after, Events: append([]drivebay.Event{}, events...)}
	if len(events) > 0 {
		list.Last = events[len(events)-1].Seq
	}
	writeJSON(w, http.StatusOK, list)
	return nil
}
