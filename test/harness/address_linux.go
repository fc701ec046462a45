package harness

import (
	"testing"

	"github.com/cniscope/cniscope/test/port"
)

// Address returns a host:port of loopback that is the test's until it ends: nobody listens
// there unless the test does, or a program that it tells to.
func Address(t testing.TB) string {
	t.Helper()
	p, err := port.Reserve()
	Check(t, err)
	t.Cleanup(p.Close)
	return p.Addr
}
