package config

import (
	"encoding"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

// words holds the durations with a name.
var words = map[string]time.Duration{"never": 0, "off": 0, "hourly": time.Hour, "daily": day, "weekly": 7 * day, "monthly": 30 * day}

var days = regexp.MustCompile(`^(\d+(?:\.\d+)?)([dw])(.*)$`)

// ParseDuration parses "10m", "7d", "2w", "1d12h", "weekly" or "never".
func ParseDuration(s string) (time.Duration, error) {
	if d, ok := words[s]; ok {
		return d, nil
	}
	rest, total := s, time.Duration(0)
	for _, unit := range []struct {
		letter string
		length time.Duration
	}{{"w", 7 * day}, {"d", day}} {
		m := days.FindStringSubmatch(rest)
		if m == nil || m[2] != unit.letter {
			continue
		}
		n, err := strconv.ParseFloat(m[1], 64)
		if err != nil || n > 100_000 {
			return 0, badDuration(s)
		}
		total += time.Duration(n * float64(unit.length))
		rest = m[3]
	}
	if rest == "" && s != "" {
		return total, nil
	}
	d, err := time.ParseDuration(rest)
	if err != nil {
		return 0, badDuration(s)
	}
	return total + d, nil
}

func badDuration(s string) error {
	return fmt.Errorf("%q is not a duration: write it as 30s, 10m, 1h30m, 7d or weekly", s)
}

// FormatDuration formats a duration for ParseDuration, without the trailing zero units of
// time.Duration.
func FormatDuration(d time.Duration) string {
	if d != 0 && d%day == 0 {
		return strconv.Itoa(int(d/day)) + "d"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// DailyWindow is a period of the day in local time. It may cross midnight. The zero DailyWindow is the whole
// day.
type DailyWindow struct{ From, To time.Duration }

// MarshalText formats the window as "01:00-05:00".
func (w DailyWindow) MarshalText() ([]byte, error) {
	if w == (DailyWindow{}) {
		return nil, nil
	}
	clock := func(d time.Duration) string { return fmt.Sprintf("%02d:%02d", int(d.Hours()), int(d.Minutes())%60) }
	return []byte(clock(w.From) + "-" + clock(w.To)), nil
}

// UnmarshalText parses "01:00-05:00".
func (w *DailyWindow) UnmarshalText(b []byte) error {
	*w = DailyWindow{}
	if len(b) == 0 {
		return nil
	}
	from, to, ok := strings.Cut(string(b), "-")
	start, err1 := time.Parse("15:04", strings.TrimSpace(from))
	end, err2 := time.Parse("15:04", strings.TrimSpace(to))
	if !ok || err1 != nil || err2 != nil || start.Equal(end) {
		return fmt.Errorf("%q is not a time window: write it as 01:00-05:00", b)
	}
	midnight := time.Date(start.Year(), start.Month(), start.Day(), 0, 0, 0, 0, time.UTC)
	w.From, w.To = start.Sub(midnight), end.Sub(midnight)
	return nil
}

var durationType = reflect.TypeFor[time.Duration]()

// setText parses a text into a field.
func setText(v reflect.Value, text string) error {
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return u.UnmarshalText([]byte(text))
	}
	if v.Type() == durationType {
		d, err := ParseDuration(text)
		v.SetInt(int64(d))
		return err
	}
	switch {
	case v.Kind() == reflect.String:
		v.SetString(text)
		return nil
	case v.Kind() == reflect.Bool:
		return setParsed(text, "true or false", parseBool, v.SetBool)
	case v.CanInt():
		return setParsed(text, "a whole number", func(s string) (int64, error) { return strconv.ParseInt(s, 10, v.Type().Bits()) }, v.SetInt)
	case v.CanUint():
		return setParsed(text, "a whole number, 0 or more", func(s string) (uint64, error) { return strconv.ParseUint(s, 10, v.Type().Bits()) }, v.SetUint)
	case v.CanFloat():
		return setParsed(text, "a number", func(s string) (float64, error) { return strconv.ParseFloat(s, 64) }, v.SetFloat)
	case v.Kind() == reflect.Slice:
		return setList(v, strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' }))
	}
	return fmt.Errorf("a %v cannot be written as text", v.Type())
}

func setParsed[T any](text, want string, parse func(string) (T, error), set func(T)) error {
	value, err := parse(text)
	if err != nil {
		return fmt.Errorf("%q is not %s", text, want)
	}
	set(value)
	return nil
}

func parseBool(s string) (bool, error) {
	switch strings.ToLower(s) {
	case "true", "yes", "on", "1":
		return true, nil
	case "false", "no", "off", "0":
		return false, nil
	}
	return false, strconv.ErrSyntax
}

func setList(v reflect.Value, texts []string) error {
	list := reflect.MakeSlice(v.Type(), len(texts), len(texts))
	for i, text := range texts {
		if err := setText(list.Index(i), text); err != nil {
			return err
		}
	}
	v.Set(list)
	return nil
}

// getText returns the text of a value in the format of setText.
func getText(v reflect.Value) string {
	if m, ok := v.Interface().(encoding.TextMarshaler); ok {
		b, err := m.MarshalText()
		if err != nil {
			return ""
		}
		return string(b)
	}
	if d, ok := v.Interface().(time.Duration); ok {
		return FormatDuration(d)
	}
	if v.Kind() == reflect.Slice {
		texts := make([]string, v.Len())
		for i := range texts {
			texts[i] = getText(v.Index(i))
		}
		return strings.Join(texts, ", ")
	}
	return fmt.Sprint(v.Interface())
}
