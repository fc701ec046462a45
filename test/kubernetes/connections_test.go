//go:build linux

package kubernetes

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

func connections(t testing.TB, pid int, port string) (n int) {
	t.Helper()
	number := harness.Must(strconv.Atoi(port))(t)
	sockets := map[string]bool{}
	for _, table := range []string{"tcp", "tcp6"} {
		text := harness.Must(os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table)))(t)
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line) // sl local_address rem_address st … inode is the tenth
			if len(fields) >= 10 && strings.HasSuffix(fields[2], fmt.Sprintf(":%04X", number)) {
				sockets["socket:["+fields[9]+"]"] = true
			}
		}
	}
	files := harness.Must(filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid)))(t)
	for _, file := range files {
		if to, err := os.Readlink(file); err == nil && sockets[to] {
			n++
		}
	}
	return n
}
