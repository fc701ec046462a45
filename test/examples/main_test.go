//go:build linux

package examples

import (
	"os"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Host(m)) }
