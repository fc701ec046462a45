package relay

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if addr := os.Getenv(strangerTo); addr != "" {
		strange(addr)
		return
	}
	goleak.VerifyTestMain(m)
}
