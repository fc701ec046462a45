package lock

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

func TestTheSecondIsToldWhoHoldsTheNode(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	for range 2 {
		release, err := Take(dir, "by hand")
		harness.Check(t, err)
		_, err = Take(dir, "by hand")
		var held *HeldError
		if !errors.As(err, &held) || !strings.HasPrefix(held.Holder, fmt.Sprintf("pid %d, by hand, since ", os.Getpid())) {
			t.Fatalf("the second lock: %v", err)
		}
		release()
	}
}
