// Package steps carries out plans. A plan is a list of steps, each with a check that reports
// whether the step is done, so that a plan that was interrupted anywhere starts again from its
// first step. Whatever may hang runs in the lane of its drive or group.
package steps
