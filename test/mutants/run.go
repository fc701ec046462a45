package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

type suite struct{ folder, run string }

// users are packages whose tests cover the mutated ones, without those that observe the host.
var users = []suite{
	{folder: "pkg/judge"},
	{folder: "pkg/timeline"},
	{folder: "pkg/trace"},
	{folder: "pkg/pipeline"},
	{folder: "pkg/export"},
	{folder: "plugin/cniscope", run: "Golden"},
}

type usage struct{ wall, cpu time.Duration }

type runner struct {
	dir      string
	together []*mutant
	overlaid string
	bases    map[suite]*base
}

type base struct {
	binary  string
	limit   usage
	reached []string
}

func (r *runner) try(m *mutant, folder string) (by string, err error) {
	own := suite{folder: folder}
	suites := append([]suite{own}, slices.DeleteFunc(slices.Clone(users), func(s suite) bool { return s == own })...)
	for _, s := range suites {
		b, err := r.base(s)
		if err != nil {
			return "", err
		}
		binary := b.binary
		if binary == "" {
			continue
		}
		if m.body.to == 0 {
			overlay, err := r.overlay([]*mutant{m})
			if err == nil {
				binary, err = r.build(s, overlay)
			}
			if err != nil {
				return "", err
			}
		} else if !slices.Contains(b.reached, strconv.Itoa(m.id)) {
			continue
		}
		for limit := b.limit; ; limit.wall *= 2 {
			out, _, err := r.execute(binary, s, limit, "MUTANT="+strconv.Itoa(m.id))
			if err == nil {
				break
			}
			if !starved(out) {
				return filepath.Base(s.folder) + " " + why(out), nil
			}
		}
	}
	return "", nil
}

func (r *runner) base(s suite) (*base, error) {
	if b := r.bases[s]; b != nil {
		return b, nil
	}
	binary, err := r.build(s, r.overlaid)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(binary); err != nil { // no test files
		r.bases[s] = &base{}
		return r.bases[s], nil
	}
	reached := binary + ".reached"
	if err := os.WriteFile(reached, nil, 0o666); err != nil {
		return nil, err
	}
	out, took, err := r.execute(binary, s, usage{time.Hour, time.Hour}, "MUTANTS_REACHED="+reached)
	if err != nil {
		return nil, fmt.Errorf("the tests of %s fail without a mutant: %s\n%s", s.folder, why(out), out)
	}
	ids, err := os.ReadFile(reached)
	b := &base{binary: binary, reached: strings.Fields(string(ids))}
	b.limit = usage{wall: 10*took.wall + time.Minute, cpu: 5*took.cpu + 10*time.Second}
	r.bases[s] = b
	return b, err
}

func (r *runner) build(s suite, overlay string) (binary string, err error) {
	dir, err := os.MkdirTemp(r.dir, "build")
	if err != nil {
		return "", err
	}
	binary = filepath.Join(dir, "test")
	args := []string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", binary, "./" + s.folder}
	out, err := exec.Command("go", args...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("the tests of %s do not compile: %w\n%s", s.folder, err, out)
	}
	return binary, err
}

// execute runs tests up to the first failure. It limits CPU time and memory (6 GiB), so that an endless loop ends.
func (r *runner) execute(binary string, s suite, limit usage, environment string) (out []byte, took usage, err error) {
	// Its path is short because tests make sockets in it, and other users may enter it.
	temporary, err := os.MkdirTemp("", "m")
	if err != nil {
		return nil, usage{}, err
	}
	defer os.RemoveAll(temporary)
	if err := os.Chmod(temporary, 0o755); err != nil {
		return nil, usage{}, err
	}
	said, err := os.Create(filepath.Join(temporary, "output"))
	if err != nil {
		return nil, usage{}, err
	}
	defer said.Close()
	limits := fmt.Sprintf(`ulimit -t %d && ulimit -v %d && exec "$@"`, int(limit.cpu.Seconds()), 6<<20)
	cmd := exec.Command("sh", "-c", limits, "sh", binary, "-test.failfast", "-test.run="+s.run,
		"-test.timeout="+limit.wall.String())
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.folder, append(os.Environ(), "TMPDIR="+temporary, environment), said, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	began := time.Now()
	err = cmd.Run()
	took = usage{time.Since(began), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	out, unread := os.ReadFile(said.Name())
	return out, took, errors.Join(err, unread)
}

var working = regexp.MustCompile(`(?m)^goroutine \d+ .*\[(running|runnable|syscall)`)

// starved reports whether tests that timed out were still at work, on a busy machine. A mutant that hangs is not, or
// runs into the limit of CPU time. One goroutine runs in any case: it prints the others.
func starved(out []byte) bool {
	return bytes.Contains(out, []byte("panic: test timed out")) && len(working.FindAll(out, 3)) > 1
}

var failure = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)|^panic: (.{1,60})|^fatal error: (.{1,60})|^(SIG\w+)`)

func why(out []byte) string {
	if m := failure.FindSubmatch(out); m != nil {
		return string(bytes.Join(m[1:], nil))
	}
	return "ended"
}
