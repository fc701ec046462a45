package terminal

import (
	"io"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

// Only a terminal that knows colors gets them, unless they are asked for.
func TestColors(t *testing.T) {
	master := harness.Terminal(t)
	for _, tt := range []struct {
		flag, name, value string
		out               io.Writer
		want              bool
	}{
		{"auto", "TERM", "xterm", master, true},
		{"auto", "TERM", "dumb", master, false},
		{"auto", "NO_COLOR", "1", master, false},
		{"always", "TERM", "dumb", io.Discard, true},
		{"auto", "TERM", "xterm", io.Discard, false},
		{"never", "TERM", "xterm", master, false},
	} {
		got := Colors(tt.flag, tt.out, func(name string) string { return map[string]string{tt.name: tt.value}[name] })
		harness.Equal(t, got, tt.want, tt)
	}
}

// A locale that is named and is not UTF-8 gets ASCII; a service has none, and is read as UTF-8.
func TestTheLocale(t *testing.T) {
	for env, want := range map[string]bool{
		"": false, "LANG=C": true, "LANG=en_US.UTF-8": false, "LANG=C.utf8": false, "LC_ALL=C LANG=en_US.UTF-8": true,
		"LC_CTYPE=C.UTF-8 LANG=C": false, "LANG=de_DE.ISO-8859-1": true, "LC_ALL=POSIX": true,
	} {
		set := map[string]string{}
		for _, one := range strings.Fields(env) {
			name, value, _ := strings.Cut(one, "=")
			set[name] = value
		}
		harness.Equal(t, ASCII(func(name string) string { return set[name] }), want, env)
	}
}
