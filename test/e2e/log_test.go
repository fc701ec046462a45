//go:build linux

package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/tied"
)

// If the log's reader restarts or exits, cniscope continues and counts unread lines.
func TestNobodyReadsTheLogAnyMore(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: loads the probe")
	}
	dir := t.TempDir()
	address := harness.Address(t)
	options := filepath.Join(dir, "cniscope.toml")
	harness.Check(t, os.WriteFile(options, fmt.Appendf(nil, "[nri]\nenabled = false\n[state]\ndir = %q\n[metrics]\nlisten = %q\n", filepath.Join(dir, "run"), address), 0o600))

	read, write, err := os.Pipe()
	harness.Check(t, err)
	c := exec.Command(program, "run", "--config", options)
	c.Stderr = write
	harness.Check(t, tied.Start(c))
	harness.Check(t, write.Close())
	t.Cleanup(func() { _ = c.Process.Kill() })
	for lines := bufio.NewScanner(read); ; {
		if !lines.Scan() {
			t.Fatal("it ended: ", c.Wait())
		}
		if strings.Contains(lines.Text(), "observing CNI calls") {
			break
		}
	}
	harness.Check(t, read.Close())

	harness.Check(t, os.WriteFile(options, []byte("no options"), 0o600)) // is logged
	harness.Check(t, c.Process.Signal(syscall.SIGHUP))
	lost := regexp.MustCompile(`cniscope_log_lines_lost_total\{[^}]*"reader"[^}]*\} [1-9]`)
	harness.Eventually(t, func() error {
		answer, err := http.Get("http://" + address + "/metrics")
		if err != nil {
			t.Fatal("it ended: ", c.Wait())
		}
		body, err := io.ReadAll(answer.Body)
		harness.Check(t, err)
		harness.Check(t, answer.Body.Close())
		if !lost.Match(body) {
			return fmt.Errorf("no line was lost:\n%s", body)
		}
		return nil
	})
	harness.Check(t, c.Process.Signal(syscall.SIGTERM))
	harness.Check(t, c.Wait())
}
