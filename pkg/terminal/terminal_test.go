package terminal

import (
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

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
