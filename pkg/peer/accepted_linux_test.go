package peer

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
)

func TestAConnectionThatNobodyAccepts(t *testing.T) {
	for network, address := range map[string]string{"unix": filepath.Join(t.TempDir(), "s"), "tcp": "127.0.0.1:0"} {
		t.Run(network, func(t *testing.T) {
			l := harness.Must(net.Listen(network, address))(t)
			defer l.Close()
			c := harness.Must(net.Dial(network, l.Addr().String()))(t)
			defer c.Close()
			short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if Accepted(short, c) {
				t.Error("nobody has accepted it")
			}
			served := harness.Must(l.Accept())(t)
			if !Accepted(t.Context(), c) {
				t.Error("somebody has accepted it")
			}
			// A process that accepted and hung up counts also.
			_ = served.Close()
			if !Accepted(t.Context(), c) {
				t.Error("somebody had accepted it")
			}
		})
	}
}
