package controller

import (
	"errors"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/api/v1alpha1"
)

// TestTaskOn: an answer counts if it is to the task of this call.
func TestTaskOn(t *testing.T) {
	gave := func(request string) func(*v1alpha1.Volume) {
		return func(o *v1alpha1.Volume) { o.Spec.Task = &v1alpha1.VolumeTask{Request: request} }
	}
	answered := func(request, code string) func(*v1alpha1.Volume) {
		return func(o *v1alpha1.Volume) {
			o.Status.Task = &v1alpha1.VolumeTaskAnswer{Request: request}
			if code != "" {
				o.Status.Task.Error = &v1alpha1.VolumeError{Code: code}
			}
		}
	}
	for name, c := range map[string]struct {
		s     volumeState
		given bool
		want  step
		err   error
	}{
		"not given":               {at(v1alpha1.VolumeMade, ""), false, stepRequest, nil},
		"after another":           {at(v1alpha1.VolumeMade, "", gave("0"), answered("0", "")), false, stepRequest, nil},
		"given":                   {at(v1alpha1.VolumeMade, "", gave("1"), unanswered), true, stepWait, nil},
		"the answer to another":   {at(v1alpha1.VolumeMade, "", gave("1"), answered("0", "Refused")), true, stepWait, nil},
		"done":                    {at(v1alpha1.VolumeMade, "", gave("1"), answered("1", "")), true, stepDone, nil},
		"refused":                 {at(v1alpha1.VolumeMade, "", gave("1"), answered("1", "Refused")), true, stepDone, drivebay.ErrRefused},
		"done, then another":      {at(v1alpha1.VolumeMade, "", gave("2"), answered("1", "")), true, stepDone, nil},
		"another took its place":  {at(v1alpha1.VolumeMade, "", gave("2")), true, stepFail, drivebay.ErrPending},
		"taken back":              {at(v1alpha1.VolumeMade, ""), true, stepFail, drivebay.ErrPending},
		"being deleted":           {at(v1alpha1.VolumeMade, "", release), false, stepFail, drivebay.ErrPending},
		"not made":                {at("", ""), false, stepFail, drivebay.ErrUnavailable},
		"missing":                 {at(v1alpha1.VolumeMissing, ""), false, stepFail, drivebay.ErrUnavailable},
		"it is missing since":     {at(v1alpha1.VolumeMissing, "", gave("1")), true, stepFail, drivebay.ErrUnavailable},
		"its other request fails": {at(v1alpha1.VolumeMade, "Range"), false, stepRequest, nil},
	} {
		if got, err := taskOn(c.s.object, "1", c.given); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %v, %v, want %v, %v", name, got, err, c.want, c.err)
		}
	}
}
