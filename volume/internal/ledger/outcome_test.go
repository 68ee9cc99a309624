package ledger

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/volume/internal/env"
)

// TestAnswerOfWorkThatContinues: a caller that has gone gets no answer, and shares none with the work that continues.
func TestAnswerOfWorkThatContinues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &Ledger{Env: &env.Env{Ctx: t.Context(), Running: &sync.WaitGroup{}}, Busy: map[string]chan struct{}{}, Records: map[string]*drivebay.VolumeRecord{"v": {Volume: drivebay.Volume{ID: "v"}}}}
		e.Acquire = func(ctx context.Context, id string) (func(), error) { return e.Begin(id) }
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		work := func(took time.Duration) func(context.Context, drivebay.Volume) (string, error) {
			return func(context.Context, drivebay.Volume) (string, error) {
				time.Sleep(took)
				return "done", nil
			}
		}
		if is, err := Answer(ctx, e, "test", "v", work(time.Minute)); is != "" || err == nil {
			t.Errorf("a caller that has gone got %q, %v", is, err)
		}
		time.Sleep(time.Hour)
		if is, err := Answer(t.Context(), e, "test", "v", work(time.Minute)); is != "done" || err != nil {
			t.Errorf("got %q, %v", is, err)
		}
	})
}
