package harness

import (
	"testing"

	"github.com/cniscope/cniscope/test/port"
)

// Address returns a host:port of loopback, reserved for the test and the programs that it starts until the test ends.
func Address(t testing.TB) string {
	t.Helper()
	p, err := port.Reserve()
	Check(t, err)
	t.Cleanup(p.Close)
	return p.Addr
}
