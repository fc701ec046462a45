package install

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

func TestVersionsThatAreTold(t *testing.T) {
	for text, want := range map[string]string{
		"2.4.2": "2 true", "v2.3.7": "2 true", "1.7.35+unknown": "1 true", "1.6.30~ds1": "1 false",
		"2": "2 true", "3.0.0-rc.1": "3 true",
	} {
		v, err := parseVersion(text, "test")
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		harness.Equal(t, fmt.Sprint(v.Major, v.hasNRI()), want, text)
	}
	for _, text := range []string{"", "x", "2 4", "latest", "2.x", "99999999999999999999"} {
		if v, err := parseVersion(text, "test"); err == nil {
			t.Errorf("%q is %v", text, v)
		}
	}
}

func TestAVersionThatWasToldBefore(t *testing.T) {
	n := newNode(t, nil)
	n.install(version("2.3"))
	for range 2 {
		if p := n.install(nil); p.Changes() || p.wish.version.Text != "2.3" {
			t.Errorf("%s: %s", p.wish.version.Text, steps(p))
		}
	}
}

// Before: status said that containerd did not answer at the default socket, whatever [runtime] socket was.
func TestTheVersionIsAskedAtTheConfiguredSocket(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "containerd.sock")
	_, err := newTree("/", nil).version(t.Context(), Options{Choice: Choice{ContainerdConfig: "/not/there.toml"}}, &manifest{}, &configuration{socket: socket})
	if err == nil || !strings.Contains(err.Error(), ": stat "+socket+": no such file") || !strings.Contains(err.Error(), "/not/there.toml does not exist") {
		t.Error(err)
	}
}
