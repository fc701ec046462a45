//go:build linux

package scenarios

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/harness"
)

func (c *call) times() (sum float64) {
	for key := range c.Attrs {
		if strings.HasPrefix(key, "cniscope.time.") {
			sum += c.Ms(key)
		}
	}
	return sum
}

func (c *call) accounted(t *testing.T) {
	t.Helper()
	if sum := c.times(); math.Abs(sum-c.Took()) > 1e-5 {
		t.Errorf("the parts sum up to %f ms of %f", sum, c.Took())
	}
	if u := c.Ms("cniscope.time.unexplained_ms"); u > c.Took()/10 {
		t.Errorf("%.1f of %.1f ms are unexplained: %s", u, c.Took(), c.Attrs["cniscope.biggest_part"])
	}
	harness.Equal(t, c.Attrs["cniscope.partial"], "", "it is partial", c.Attrs["cniscope.partial_reason"])
}

func hold(t *testing.T, path string) (free func()) {
	t.Helper()
	harness.Check(t, os.MkdirAll(filepath.Dir(path), 0o755))
	f := harness.Must(os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600))(t)
	harness.Check(t, unix.Flock(int(f.Fd()), unix.LOCK_EX))
	return func() { f.Close() }
}
