package compare

import "github.com/drivebay/drivebay"

// test is the self-test that stands at a place of the log, newest first.
func test(d *drivebay.Drive, at int) (drivebay.SelfTest, bool) {
	if at < 0 || at >= len(d.Evidence.SelfTests) {
		return drivebay.SelfTest{}, false
	}
	return d.Evidence.SelfTests[at], true
}

// testKind is the code that smartctl gives, if our word for the kind is its word.
func testKind(d *drivebay.Drive, at int, code uint64, words map[uint64]string) any {
	t, there := test(d, at)
	if !there {
		return nil
	}
	word, known := words[code]
	if !known {
		word = "other"
	}
	if t.Kind != word {
		return t.Kind
	}
	return code
}

// testResult is the code that smartctl gives, if our verdict is what it means.
// Which part of a drive failed is in our text only.
func testResult(d *drivebay.Drive, at int, code uint64, verdicts map[uint64]drivebay.SelfTestResult) any {
	t, there := test(d, at)
	if !there {
		return nil
	}
	if t.Result != verdicts[code] {
		return t.Result
	}
	return code
}

func testHours(d *drivebay.Drive, at int) any {
	t, there := test(d, at)
	if !there {
		return nil
	}
	return t.Hours
}

func testLBA(d *drivebay.Drive, at int) any {
	t, _ := test(d, at)
	return told(t.LBA)
}
