package kubectl

import "testing"

func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"`drivebay replace naa-5000c5.n1`":             "`kubectl drivebay replace naa-5000c5.n1`",
		"`drivebay volume show v` and `drivebay tree`": "`kubectl drivebay volume show v` and `kubectl drivebay tree`",
		"`drivebay selftest naa-5000c5.storage-1.example long`; `drivebay replace naa-5000c5.storage-1.example` if it fails": "`drivebay selftest naa-5000c5 long` on node storage-1.example; `kubectl drivebay replace naa-5000c5.storage-1.example` if it fails",
		"`drivebay drive retry sn-acme-1.n1` retries": "`drivebay drive retry sn-acme-1` on node n1 retries",
		"`drivebay serve --sim rack24.yaml`":          "`drivebay serve --sim rack24.yaml`",
		"the drive naa-5000c5.n1, `drivebay refresh`": "the drive naa-5000c5.n1, `drivebay refresh`",
	} {
		if got := string(Words([]byte(text))); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
