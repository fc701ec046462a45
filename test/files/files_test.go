//go:build linux

// Package files tests cniscope on malicious recordings, and on a very large one.
package files

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/scope"
)

// Bounds for a file of 100 MB.
const (
	memoryMax = 512 << 20
	timeMax   = 30 * time.Second
)

var program string

func TestMain(m *testing.M) { os.Exit(scope.Main(m, &program)) }

func size(t *testing.T) (bytes int64, whole bool) {
	mb := 1
	if s := os.Getenv("CNISCOPE_FILES"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal("CNISCOPE_FILES is a number of megabytes: ", err)
		}
		mb, whole = n, true
	}
	return int64(mb) << 20, whole
}

// The author of a file controls neither the memory nor the duration of reading it.
func TestLookingAtAStrangersFile(t *testing.T) {
	if program == "" {
		t.Skip("needs root, as whatever builds cniscope")
	}
	bytes, whole := size(t)
	for name, file := range files {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "it.rec.gz")
			write(t, path, bytes, file.lines, file.packed)
			for _, args := range [][]string{
				{"show", path},
				{"show", "--summary", path},
				{"show", "--html", path},
				{"show", "--format", "json", path},
				{"show", "--problems", "--max-call", "1ms", path},
				{"show", "-", "--summary"},
				{"diff", path, path},
			} {
				look(t, path, args, file.says, whole)
			}
		})
	}
}

func look(t *testing.T, path string, args []string, says string, timed bool) {
	t.Helper()
	what := strings.ReplaceAll(strings.Join(args, " "), path, "FILE")
	in, err := os.Open(path)
	harness.Check(t, err)
	defer in.Close()
	cmd := exec.Command(program, args...)
	var said bytes.Buffer
	var out counter
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &out, &said
	began := time.Now()
	err = cmd.Run()
	took := time.Since(began)
	memory := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
	t.Logf("%-40s %6.1fs %4d MiB, wrote %d MiB, %v", what, took.Seconds(), memory>>20, out>>20, err)
	if memory > memoryMax {
		t.Errorf("%s took %d MiB", what, memory>>20)
	}
	if limit := timeMax * time.Duration(1+strings.Count(what, "FILE FILE")); timed && took > limit {
		t.Errorf("%s took %s", what, took)
	}
	if text := said.String(); says != "" && !strings.Contains(text, says) || strings.Contains(text, "goroutine ") || len(text) > 1<<20 {
		t.Errorf("%s says %.2000s, want %q", what, text, says)
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "cniscope-show-*")); len(left) > 0 {
		t.Errorf("%s left %q behind", what, left)
	}
}

type counter int64

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

func write(t *testing.T, path string, bytes int64, lines func(io.Writer, int), level int) {
	t.Helper()
	f := harness.Must(os.Create(path))(t)
	defer f.Close()
	z := harness.Must(gzip.NewWriterLevel(f, level))(t)
	w := &bounded{Writer: bufio.NewWriterSize(z, 1<<20), left: bytes}
	for i := 0; w.left > 0; i++ {
		lines(w, i)
	}
	harness.Check(t, w.Flush())
	harness.Check(t, z.Close())
}

type bounded struct {
	*bufio.Writer
	left int64
}

func (b *bounded) Write(p []byte) (int, error) {
	b.left -= int64(len(p))
	return b.Writer.Write(p)
}
