package harness

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/tied"
)

// Beside starts a command that ends with the test. It returns the command's output, unless the command has one of its
// own; a failed test prints the end of that.
func Beside(t testing.TB, cmd *exec.Cmd) *Log {
	t.Helper()
	said := &Log{}
	if cmd.Stdout == nil {
		cmd.Stdout = said
	}
	if cmd.Stderr == nil {
		cmd.Stderr = said
	}
	cmd.WaitDelay = time.Second
	Check(t, tied.Start(cmd))
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if text := said.String(); t.Failed() && text != "" {
			t.Logf("%s said:\n%s", filepath.Base(cmd.Path), text[max(0, len(text)-8000):])
		}
	})
	return said
}

// Build builds a Go program, as for a release, and returns its file, which has the name of its folder.
func Build(t testing.TB, source string, flags ...string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), filepath.Base(source))
	cmd := exec.Command("go", slices.Concat([]string{"build", "-trimpath", "-ldflags", "-s -w", "-o", file}, flags, []string{source})...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", source, err, out)
	}
	return file
}

// CopyFile copies a program or another file.
func CopyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o755)
}
