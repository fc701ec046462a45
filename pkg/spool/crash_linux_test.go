package spool

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
)

func written(t *testing.T, n int) (dir string, names []string, ends []int64) {
	t.Helper()
	dir = t.TempDir()
	s := mustOpen(t, large(dir))
	names = numbers(0, n)
	for _, name := range names {
		appendAll(t, s, noon, name)
		ends = append(ends, s.Stats().Bytes)
	}
	harness.Check(t, s.Close())
	return dir, names, ends
}

// A kill or a power failure can occur at any byte.
func TestATornTailIsCut(t *testing.T) {
	dir, names, ends := written(t, 8)
	file := segmentFiles(t, dir)[0]
	data := harness.Must(os.ReadFile(file))(t)
	for size := range len(data) + 1 {
		whole, end := 0, int64(0)
		for whole < len(ends) && ends[whole] <= int64(size) {
			end = ends[whole]
			whole++
		}
		for _, tail := range [][]byte{nil, make([]byte, 100)} { // cut short, or never written
			harness.Check(t, os.WriteFile(file, append(data[:size:size], tail...), 0o600))
			got, errs := readAll(t, dir, time.Time{})
			same(t, fmt.Sprintf("read of %d bytes", size), got, names[:whole])
			if errs != nil {
				t.Fatalf("%d bytes: %v", size, errs)
			}
			s := mustOpen(t, large(dir))
			if cut := s.Found().Cut; cut != int64(size+len(tail))-end {
				t.Fatalf("%d bytes: %d were cut off", size, cut)
			}
			appendAll(t, s, noon, "new")
			waits(t, fmt.Sprintf("after %d bytes", size), s, append(names[:whole:whole], "new")...)
			harness.Check(t, s.Close())
		}
	}
}

// Damage loses only the damaged records.
func TestDamageCostsOnlyWhatItTouches(t *testing.T) {
	dir, names, ends := written(t, 40)
	file := segmentFiles(t, dir)[0]
	data := harness.Must(os.ReadFile(file))(t)
	// A second segment prevents the first from being cut by Open.
	harness.Check(t, os.WriteFile(filepath.Join(dir, segment{sequence: 99}.name()), encode(nil, named("after")), 0o600))
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		bad := slices.Clone(data)
		from := random.IntN(len(bad))
		to := min(len(bad), from+1+random.IntN(100))
		for i := from; i < to; i++ {
			bad[i] ^= byte(1 + random.IntN(255))
		}
		var want []string
		for i, end := range ends {
			begin := int64(0)
			if i > 0 {
				begin = ends[i-1]
			}
			if int64(to) <= begin || int64(from) >= end {
				want = append(want, names[i])
			}
		}
		want = append(want, "after")
		harness.Check(t, os.WriteFile(file, bad, 0o600))
		s := mustOpen(t, large(dir))
		got, damaged := waiting(t, s)
		what := fmt.Sprintf("bytes %d to %d", from, to)
		same(t, what, got, want)
		if damaged == 0 || damaged > 8 {
			t.Fatalf("%s: %d damaged", what, damaged)
		}
		read, errs := readAll(t, dir, time.Time{})
		same(t, what, read, want)
		if len(errs) != 1 || !strings.Contains(errs[0].Error(), "is damaged from byte") {
			t.Fatalf("%s: %v", what, errs)
		}
		harness.Check(t, s.Close())
	}
}

// After kills, everything that Append accepted is there, and nothing that Advance confirmed comes twice.
func TestKill9LosesNothingAndRepeatsNothing(t *testing.T) {
	dir := t.TempDir()
	var appended, exported []string
	maybe := map[string]bool{} // killed between sending and Advance
	for round := range 15 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childDir+"="+dir)
		out := harness.Must(cmd.StdoutPipe())(t)
		harness.Check(t, cmd.Start())
		lines, sent := 0, ""
		// The kill may cut a line that is longer than PIPE_BUF; ReadString returns that with an error.
		for read := bufio.NewReader(out); ; lines++ {
			line, err := read.ReadString('\n')
			if err != nil {
				break
			}
			if lines == 50+round*13 {
				_ = cmd.Process.Kill()
			}
			verb, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			switch verb {
			case "appended":
				appended = append(appended, name)
			case "sent":
				sent = name
			case "exported":
				exported = append(exported, name)
				sent = ""
			default:
				t.Fatal(line)
			}
		}
		_ = cmd.Wait()
		if sent != "" {
			maybe[sent] = true
		}
	}
	s := mustOpen(t, large(dir))
	left, damaged := waiting(t, s)
	if damaged > 0 {
		t.Errorf("%d damaged", damaged)
	}
	seen := map[string]int{}
	for _, name := range slices.Concat(exported, left) {
		seen[name]++
	}
	for name, n := range seen {
		if n > 1 && !maybe[name] {
			t.Errorf("%.20s came %d times", name, n)
		}
	}
	lost := 0
	for _, name := range appended {
		if seen[name] == 0 && !maybe[name] {
			lost++
		}
	}
	if lost > 0 || len(exported) < 15 {
		t.Errorf("%d of %d lost, %d exported", lost, len(appended), len(exported))
	}
	t.Logf("%d appended, %d exported, %d wait, %d kills between answer and cursor", len(appended), len(exported),
		len(left), len(maybe))
}
