//go:build linux

package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A journal that is restarted, a pipe into a logger that ends: cniscope goes on, and counts
// what nobody has read.
func TestNobodyReadsTheLogAnyMore(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: loads the probe")
	}
	dir := t.TempDir()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	address := free.Addr().String()
	check(t, free.Close())
	options := filepath.Join(dir, "cniscope.toml")
	check(t, os.WriteFile(options, fmt.Appendf(nil, "[nri]\nenabled = false\n[state]\ndir = %q\n[metrics]\nlisten = %q\n", filepath.Join(dir, "run"), address), 0o600))

	read, write, err := os.Pipe()
	check(t, err)
	c := exec.Command(program, "run", "--config", options)
	c.Stderr = write
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	check(t, c.Start())
	check(t, write.Close())
	t.Cleanup(func() { _ = c.Process.Kill() })
	for lines := bufio.NewScanner(read); ; {
		if !lines.Scan() {
			t.Fatal("it ended: ", c.Wait())
		}
		if strings.Contains(lines.Text(), "observing CNI calls") {
			break
		}
	}
	check(t, read.Close())

	check(t, os.WriteFile(options, []byte("no options"), 0o600)) // which is said
	check(t, c.Process.Signal(syscall.SIGHUP))
	lost := regexp.MustCompile(`cniscope_log_lines_lost_total\{[^}]*"reader"[^}]*\} [1-9]`)
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		answer, err := http.Get("http://" + address + "/metrics")
		if err != nil {
			t.Fatal("it ended: ", c.Wait())
		}
		body, err := io.ReadAll(answer.Body)
		check(t, err)
		check(t, answer.Body.Close())
		if lost.Match(body) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("no line was lost:\n%s", body)
		}
	}
	check(t, c.Process.Signal(syscall.SIGTERM))
	check(t, c.Wait())
}
