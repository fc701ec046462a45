//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/scope"
)

var profiles = []struct{ title, file, sample string }{
	{"CPU, by function", "cpu", "cpu"},
	{"allocated", "allocs", "alloc_space"},
	{"held at the end", "heap", "inuse_space"},
}

// stages lists the parts of an event's way by prefixes of functions. A sample counts for the innermost function with one.
var stages = []struct {
	name  string
	funcs []string
}{
	{"garbage collection", []string{"runtime.gcBgMarkWorker", "runtime.gcAssistAlloc", "runtime.bgsweep", "runtime.bgscavenge", "runtime.gcStart"}},
	{"read the ring and the kernel's maps", []string{"pkg/probe/kernel.", "github.com/cilium/ebpf"}},
	{"redact and clean", []string{"pkg/redact.", "pkg/text."}},
	{"builds, symbols, function names", []string{"pkg/probe/builds.", "pkg/probe/symbols.", "pkg/probe/functions."}},
	{"read /proc", []string{"pkg/procfs.", "pkg/probe/trust.", "pkg/peer.", "pkg/anchor.", "github.com/prometheus/procfs"}},
	{"decode", []string{"pkg/probe/decode.", "pkg/probe/image.", "pkg/probe/arguments.", "pkg/netlink."}},
	{"follow processes and agents", []string{"pkg/probe.", "pkg/probe/"}},
	{"look at silent pods", []string{"pkg/firstconn.", "pkg/doctor", "pkg/firewall.", "github.com/vishvananda/netlink"}},
	{"record", []string{"pkg/record."}},
	{"encode", []string{"google.golang.org/protobuf", "go.opentelemetry.io/proto"}},
	{"deliver", []string{
		"pkg/otlp.", "pkg/queue.", "pkg/export.", "pkg/spool.", "pkg/disk.", "google.golang.org/grpc", "golang.org/x/net", "compress/",
	}},
	{"history, metrics, log", []string{"pkg/history.", "pkg/metrics.", "pkg/logging.", "pkg/control.", "log/slog", "github.com/prometheus/client"}},
	{"timeline", []string{"pkg/timeline.", "pkg/tree.", "pkg/active.", "pkg/pods.", "pkg/model."}},
	{"judge", []string{"pkg/judge.", "pkg/baseline."}},
	{"trace", []string{"pkg/trace.", "pkg/attr."}},
	{"runtime by NRI, CRI and relay", []string{"pkg/nri.", "pkg/runtime.", "pkg/ready.", "pkg/relay.", "pkg/cniconf.", "github.com/containerd"}},
	{"the node's loop", []string{"pkg/node.", "pkg/node/", "pkg/source.", "pkg/pipeline.", "pkg/event.", "plugin/cniscope."}},
}

// measureProfile runs bursts with a profiled cniscope and prints profiles. It runs only if named: profiling costs time.
func measureProfile(ctx context.Context, s settings) (rows []row, err error) {
	dir, err := os.MkdirTemp("", "cniscope-profile")
	if err != nil {
		return nil, err
	}
	overlay, err := profiling(dir)
	if err == nil {
		s.program, err = scope.Build(ctx, dir, "-overlay", overlay)
	}
	if err != nil {
		return nil, err
	}
	n, err := startNode(ctx, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	if _, err := n.pod(ctx); err != nil {
		return nil, err
	}
	for _, size := range bursts {
		more, err := n.profiled(ctx, size, filepath.Join(dir, strconv.Itoa(size)))
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

// profiling adds testdata/profile.go to the program.
func profiling(dir string) (overlay string, err error) {
	root, err := filepath.Abs(".") // as for the other parts of make bench
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": {
		filepath.Join(root, "plugin/cniscope/profile.go"): filepath.Join(root, "test/bench/testdata/profile.go"),
	}})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}

// profiled runs bursts until about 150 pods came and went.
func (n *node) profiled(ctx context.Context, size int, dir string) (rows []row, err error) {
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Setenv("CNISCOPE_PROFILE", dir)); err != nil {
		return nil, err
	}
	if n.observer, err = n.observe(ctx, ""); err != nil {
		return nil, err
	}
	defer func() { err, n.observer = errors.Join(err, n.observer.Stop()), nil }()
	pid := n.observer.PID()
	if err := signaled(ctx, pid, filepath.Join(dir, "begun")); err != nil {
		return nil, err
	}
	began, err := cpuTime(pid)
	if err != nil {
		return nil, err
	}
	rounds := max(150/size, 1)
	for range rounds {
		if _, err := n.burst(ctx, size); err != nil {
			return nil, err
		}
		if err := pause(ctx, handedOver); err != nil {
			return nil, err
		}
	}
	now, err := cpuTime(pid)
	if err != nil {
		return nil, err
	}
	if err := signaled(ctx, pid, filepath.Join(dir, "done")); err != nil {
		return nil, err
	}
	return n.stages(ctx, size, float64(rounds*size), now-began, dir)
}

func (n *node) stages(ctx context.Context, size int, pods float64, measured time.Duration, dir string) (rows []row, err error) {
	for _, p := range profiles {
		out, err := pprof(ctx, "-top", "-nodecount=40", "-sample_index="+p.sample, n.settings.program, filepath.Join(dir, p.file))
		if err != nil {
			return nil, err
		}
		fmt.Printf("%s, %d pods at once (%s):\n%s\n", p.title, size, filepath.Join(dir, p.file), out)
	}
	held, err := os.ReadFile(filepath.Join(dir, "memory"))
	if err != nil {
		return nil, err
	}
	fmt.Printf("memory of Go, in bytes:\n%s\n", held)
	traces, err := pprof(ctx, "-traces", "-unit=us", n.settings.program, filepath.Join(dir, "cpu"))
	if err != nil {
		return nil, err
	}
	name := func(figure string) string { return fmt.Sprintf("%s, a pod of %d at once", figure, size) }
	spent, sum := stagesOf(traces), 0.0
	for _, stage := range append(stageNames(), "Go's scheduler, and the rest") {
		sum += spent[stage]
		rows = append(rows, row{figure: name(stage), value: spent[stage] / pods, unit: "µs"})
	}
	return append(rows, row{
		figure: name("all stages"), value: sum / pods, unit: "µs",
		note: fmt.Sprintf("%.0f %% of the measured %.0f µs; flame graph: go tool pprof -http=: %s", 100*sum/micro(measured), micro(measured)/pods, filepath.Join(dir, "cpu")),
	}), nil
}

func stageNames() (names []string) {
	for _, s := range stages {
		names = append(names, s.name)
	}
	return names
}

// stagesOf returns the microseconds of each stage from the output of pprof -traces.
func stagesOf(traces string) map[string]float64 {
	spent := map[string]float64{}
	for sample := range strings.SplitSeq(traces, "-----------+") {
		_, stack, _ := strings.Cut(sample, "\n")
		value, _, _ := strings.Cut(strings.TrimSpace(stack), " ")
		if us, err := strconv.ParseFloat(strings.TrimSuffix(value, "us"), 64); err == nil {
			spent[stageOf(strings.Split(stack, "\n"))] += us
		}
	}
	return spent
}

func stageOf(stack []string) string {
	for _, line := range stack {
		function := strings.TrimPrefix(strings.TrimSpace(line[min(11, len(line)):]), "github.com/cniscope/cniscope/")
		for _, stage := range stages {
			if slices.ContainsFunc(stage.funcs, func(prefix string) bool { return strings.HasPrefix(function, prefix) }) {
				return stage.name
			}
		}
	}
	return "Go's scheduler, and the rest"
}

func pprof(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", append([]string{"tool", "pprof"}, args...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go tool pprof: %w\n%s", err, out)
	}
	return string(out), nil
}

// signaled requests the profile's next step and waits for its file.
func signaled(ctx context.Context, pid int, done string) error {
	if err := unix.Kill(pid, unix.SIGUSR2); err != nil {
		return err
	}
	for {
		if _, err := os.Stat(done); err == nil {
			return nil
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}
