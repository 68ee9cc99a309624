package hostsim

import (
	"errors"
	"fmt"
	"time"

	"github.com/drivebay/drivebay/internal/host"
)

// Results of self-tests. The three command sets share these numbers (ACS-4 9.x, NVM Express base 2.0
// figure 213, SPC-5 table 389).
const (
	testPassed  = 0x0
	testAborted = 0x1
	testFailed  = 0x7
	testRunning = 0xF
)

// Kinds of self-tests, as numbered by ATA and NVMe, and by SCSI for background tests.
const (
	testShort = 1
	testLong  = 2
)

// testResult is an entry of the self-test log.
type testResult struct {
	kind, result byte
	hours        uint64
	lba          uint64 // of the first failure
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

// maxTests is how many results are kept; the logs have room for 19 to 21.
const maxTests = 19

func (s *pageState) startTest(kind host.SelfTestKind) error {
	s.finishTest()
	now := s.clock.Now()
	switch kind {
	case host.SelfTestShort:
		s.running = &runningTest{testShort, now, shortTest}
	case host.SelfTestLong:
		s.running = &runningTest{testLong, now, s.longTest}
	case host.SelfTestAbort:
		if s.running != nil {
			s.logTest(testResult{kind: s.running.kind, result: testAborted, hours: s.hours()})
		}
		s.running = nil
		return nil
	default:
		return fmt.Errorf("kind %q: want short, long or abort: %w", kind, errors.ErrUnsupported)
	}
	s.started++
	return nil
}

// finishTest ends a self-test after its duration.
func (s *pageState) finishTest() {
	if s.running == nil || s.clock.Now().Sub(s.running.begun) < s.running.takes {
		return
	}
	r := testResult{kind: s.running.kind, hours: s.hours()}
	if s.spoilt.testsFail {
		r.result, r.lba = testFailed, failingLBA
	}
	s.running = nil
	s.logTest(r)
}

// failingLBA is the sector where self-tests and reads of a broken drive fail.
const failingLBA = 0x1234

func (s *pageState) logTest(r testResult) {
	s.tests = append([]testResult{r}, s.tests...)
	s.tests = s.tests[:min(len(s.tests), maxTests)]
}

// progress returns the completed percentage of the self-test.
func (r *runningTest) progress(now time.Time) int {
	return min(99, int(100*now.Sub(r.begun)/r.takes))
}
