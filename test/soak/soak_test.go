//go:build linux

package soak

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/scope"
)

var program string

func TestMain(m *testing.M) {
	os.Exit(scope.Main(m, &program))
}

type settings struct {
	pods  int
	seed  uint64
	only  int // the only round; -1: all
	dir   string
	sizes sizes
}

func read(t *testing.T) settings {
	t.Helper()
	s := settings{pods: 60, seed: 1, only: -1, sizes: small}
	number := func(name string, to func(int)) {
		if text := os.Getenv(name); text != "" {
			n := harness.Must(strconv.Atoi(text))(t)
			to(n)
		}
	}
	number("CNISCOPE_SOAK_PODS", func(n int) { s.pods = n })
	number("CNISCOPE_SOAK_SEED", func(n int) { s.seed = uint64(n) })
	number("CNISCOPE_SOAK_ROUND", func(n int) { s.only = n })
	if s.pods >= 300 {
		s.sizes = full
	}
	if s.dir = os.Getenv("CNISCOPE_SOAK_DIR"); s.dir == "" || s.only >= 0 {
		s.dir = t.TempDir()
	}
	return s
}

func (s settings) replay(round int) string {
	return fmt.Sprintf("make soak SOAK_PODS=%d SOAK_SEED=%d SOAK_ROUND=%d", s.pods, s.seed, round)
}

// Pods come and go while everything around them dies.
func TestSoak(t *testing.T) {
	s := read(t)
	harness.Check(t, os.MkdirAll(s.dir, 0o700))
	d := harness.Must(openDiary(filepath.Join(s.dir, fmt.Sprintf("diary-%d-%d.jsonl", s.pods, s.seed))))(t)
	t.Cleanup(func() { harness.Check(t, d.close()) })
	done, round := d.done()
	if done >= s.pods {
		t.Skipf("the diary has %d pods already", done)
	}
	ctx := harness.Context(t)
	n := newNode(ctx, t, s.dir)
	kinds := faults()
	for ; done < s.pods; round++ {
		if s.only >= 0 {
			round, done = s.only, s.pods
		}
		e := n.round(ctx, schedule(s.seed, round, s.sizes, kinds))
		if ctx.Err() != nil {
			t.Logf("interrupted in round %d, which is done again by the same command", round)
			break
		}
		for _, v := range e.Violations {
			t.Errorf("round %d: %s", round, v)
		}
		harness.Check(t, d.write(e))
		done += len(e.Pods)
		t.Logf("round %d: %s", round, e)
		if len(e.Violations) > 0 {
			t.Logf("again: %s\ncniscope's log:\n%s", s.replay(round), n.tail())
		}
		if n.over() != "" {
			t.Fatal("cniscope cannot be started again")
		}
	}
	t.Log("\n" + report(d.entries))
	for _, what := range grown(d.entries) {
		t.Errorf("with the pods of a life grow %s", what)
	}
}
