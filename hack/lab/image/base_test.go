package image

import (
	"slices"
	"testing"
)

func TestDebianSources(t *testing.T) {
	const table = "Debian\t/usr/share/keyrings/own.gpg\thttp://mirror.example/debian\ttrixie\tmain\n" +
		"Debian\t/usr/share/keyrings/own.gpg\thttp://mirror.example/debian\ttrixie\tmain\n" + // once per architecture
		"Debian\t$(SIGNED_BY)\thttp://mirror.example/debian\ttrixie-updates\tmain\n" +
		"Debian\tABCDEF0123\thttp://security.example\ttrixie-security\tcontrib\n" + // a fingerprint is no file
		"Debian Backports\t\thttp://mirror.example/debian\ttrixie-backports\tmain\n" +
		"Debian\t\thttp://mirror.example/debian\tbookworm-backports-sloppy\tmain\n" +
		"Docker\t/etc/apt/keyrings/docker.asc\thttps://download.docker.com/linux/debian\ttrixie\tstable\n" +
		"\t\tfile:/srv/packages\t./\t\n" +
		"Debian\tcut off\n"
	want := []string{
		"deb [signed-by=/usr/share/keyrings/own.gpg] http://mirror.example/debian trixie main",
		"deb http://mirror.example/debian trixie-updates main",
		"deb http://security.example trixie-security contrib",
	}
	if got := debianSources(table); !slices.Equal(got, want) {
		t.Errorf("sources\n%q, want\n%q", got, want)
	}
	if got := debianSources(""); len(got) != 0 {
		t.Errorf("out of nothing: %q", got)
	}
}

// TestReleases: an image from one mirror is as good as one from another.
func TestReleases(t *testing.T) {
	one := releases([]string{"deb [signed-by=/k] http://a/debian trixie main", "deb http://b/sec trixie-security main"})
	two := releases([]string{"deb http://mirror/sec trixie-security main", "deb http://mirror/debian trixie main"})
	if !slices.Equal(one, two) || !slices.Equal(one, []string{"trixie main", "trixie-security main"}) {
		t.Errorf("%q and %q", one, two)
	}
	if slices.Equal(one, releases([]string{"deb http://a/debian trixie main"})) {
		t.Error("a release less is no difference")
	}
}

func TestAfter(t *testing.T) {
	const depends = "linux-image-amd64\n  Depends: linux-image-6.12.48+deb13-amd64\n  Depends: linux-image-other\n"
	const show = "Package: linux-image-6.12.48+deb13-amd64\nSource: linux-signed (6.12)\nVersion: 6.12.48-1\nDescription: x\n Version: no field\n"
	for _, test := range []struct {
		text, word, want string
		found            bool
	}{
		{depends, "Depends: linux-image", "-6.12.48+deb13-amd64", true},
		{show, "Version: ", "6.12.48-1", true},
		{"linux-image-amd64\n", "Depends: linux-image", "", false},
		{"", "Version: ", "", false},
	} {
		if got, found := after(test.text, test.word); got != test.want || found != test.found {
			t.Errorf("%q: %q %v, want %q %v", test.word, got, found, test.want, test.found)
		}
	}
}
