package relay

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain is also another process on the node.
func TestMain(m *testing.M) {
	if addr := os.Getenv(strangerTo); addr != "" {
		strange(addr)
		return
	}
	goleak.VerifyTestMain(m)
}
