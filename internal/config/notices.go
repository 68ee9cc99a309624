package config

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Notify configures the notices that the daemon sends.
type Notify struct {
	Kinds      []string      `yaml:"kinds" doc:"Which notices are sent: bad and suspect (the health of a drive), abnormal (a volume), recovered, hands (work that waits for an operator). docs/notices.md describes each."`
	Webhook    string        `yaml:"webhook" doc:"URL that gets each notice as JSON, by POST. Redirects are not followed. Empty: no webhook."`
	SecretFile string        `yaml:"secretFile" doc:"File that holds the key of the webhook's signature (HMAC-SHA256). It is read for each notice. Empty: no signature."`
	CAFile     string        `yaml:"caFile" doc:"PEM file of the authorities that the webhook's certificate is checked with. Empty: those of the system."`
	Command    []string      `yaml:"command" doc:"Program and arguments, as a list, that get each notice as JSON on standard input. No shell is involved. Empty: no command."`
	Timeout    time.Duration `yaml:"timeout" min:"1s" max:"5m" doc:"Time within which a webhook or a command has to end. A notice that was not taken is sent again, with growing delays."`
}

// noticeKinds are the kinds of notices.
var noticeKinds = []string{"bad", "suspect", "abnormal", "recovered", "hands"}

func checkKinds(text string) error {
	for _, kind := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		if !slices.Contains(noticeKinds, kind) {
			return fmt.Errorf("%q is unknown; the kinds are %s", kind, strings.Join(noticeKinds, ", "))
		}
	}
	return nil
}

func checkWebhook(s string) error {
	if s == "" {
		return nil
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return errors.New("want a URL such as https://alerts.example/drivebay")
	case u.User != nil:
		return errors.New("a URL with a password is shown by `drivebay config print`: use secretFile")
	case u.Fragment != "":
		return errors.New("a URL with a fragment is not sent whole")
	}
	return nil
}

// checkCommand requires the path of the program: what $PATH finds may change.
func checkCommand(text string) error {
	if text != "" && !strings.HasPrefix(text, "/") {
		return fmt.Errorf("want the absolute path of a program, followed by its arguments, not %q", text)
	}
	return nil
}
