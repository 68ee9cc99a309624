package pages

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/drivebay/drivebay/internal/host"
)

// Results of self-tests. The three command sets share these numbers (ACS-4 9.x, NVM Express base 2.0
// figure 213, SPC-5 table 389).
const (
	testPassed  = 0x0
	testAborted = 0x1
	TestFailed  = 0x7
	testRunning = 0xF
)

// Kinds of self-tests, as numbered by ATA and NVMe, and by SCSI for background tests. Only ATA has
// selective ones.
const (
	TestShort     = 1
	testLong      = 2
	testSelective = 4
)

// Span is a range of sectors; both ends are part of it.
type Span struct{ First, Last uint64 }

// TestResult is an entry of the self-test log.
type TestResult struct {
	Kind, Result byte
	Hours        uint64
	Lba          uint64 // of the first failure
}

// runningTest is a self-test in progress.
type runningTest struct {
	kind  byte
	begun time.Time
	takes time.Duration
}

// shortTest is the duration of a short self-test: ATA recommends two minutes (ACS-4, SMART READ DATA
// byte 372).
const shortTest = 2 * time.Minute

// MaxTests is how many results are kept; the logs have room for 19 to 21.
const MaxTests = 19

func (s *State) StartTest(kind host.SelfTestKind) error {
	s.finishTest()
	now := s.Clock.Now()
	switch kind {
	case host.SelfTestShort:
		s.Running = &runningTest{TestShort, now, shortTest}
	case host.SelfTestLong:
		s.Running = &runningTest{testLong, now, s.LongTest}
	case host.SelfTestAbort:
		if s.Running != nil {
			s.LogTest(TestResult{Kind: s.Running.kind, Result: testAborted, Hours: s.Hours()})
		}
		s.Running = nil
		return nil
	default:
		return fmt.Errorf("kind %q: want short, long or abort: %w", kind, errors.ErrUnsupported)
	}
	s.Started++
	return nil
}

// StartSelective starts a selective self-test, as programs beside the daemon do.
func (s *State) StartSelective(spans ...Span) {
	s.finishTest()
	s.Running, s.Spans, s.span = &runningTest{testSelective, s.Clock.Now(), shortTest}, spans, 1
	s.Started++
}

// finishTest ends a self-test after its duration.
func (s *State) finishTest() {
	if s.Running == nil || s.Clock.Now().Sub(s.Running.begun) < s.Running.takes {
		return
	}
	r := TestResult{Kind: s.Running.kind, Hours: s.Hours()}
	if s.Spoilt.TestsFail && (r.Kind != testSelective || slices.ContainsFunc(s.Spans, func(p Span) bool { return p.First <= FailingLBA && FailingLBA <= p.Last })) {
		r.Result, r.Lba = TestFailed, FailingLBA
	}
	s.Running, s.span = nil, 0
	s.LogTest(r)
}

// FailingLBA is the sector where self-tests and reads of a broken drive fail.
const FailingLBA = 0x1234

func (s *State) LogTest(r TestResult) {
	s.Tests = append([]TestResult{r}, s.Tests...)
	s.Tests = s.Tests[:min(len(s.Tests), MaxTests)]
}

// ForgetTests empties the logs of self-tests.
func (s *State) ForgetTests() { s.Tests, s.Running, s.Spans, s.span = nil, nil, nil, 0 }

// progress returns the completed percentage of the self-test.
func (r *runningTest) progress(now time.Time) int {
	return min(99, int(100*now.Sub(r.begun)/r.takes))
}
