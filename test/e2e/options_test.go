//go:build linux

package e2e

import (
	"strings"

	"github.com/cniscope/cniscope/test/harness"
)

func (s *stage) options(toml string) {
	s.Helper()
	n := strings.Count(s.scope.LogText(), "msg=\"options changed\"")
	harness.Check(s.T, s.scope.SetOptions(toml+quick))
	s.logged("msg=\"options changed\"", n+1)
}
