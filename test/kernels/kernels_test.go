package kernels

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// kernels are the columns of testdata/features.md. kernels.mk reads the images from here.
var kernels = []kernel{
	{name: "5.10", image: "bullseye-amd64", lacks: []string{
		"network namespace cookie",
		"waits for the kernel's own locks, who has them",
		"tracepoints: lock contention",
		"tracepoint: netlink extack", "who dropped packets", byChain, byFunctions,
	}},
	{name: "6.1", image: "bookworm-amd64", lacks: []string{byFunctions}}, // has the deadlock
	{name: "6.12", image: "trixie-amd64"},
	{name: "newest", image: "sid-amd64"},
	{name: "6.12, arm64", image: "trixie-arm64"},
	{name: "6.12, by system calls", image: "trixie-amd64", options: systemCalls, lacks: []string{byFunctions}},
	{name: "newest, by system calls", image: "sid-amd64", options: systemCalls, lacks: []string{byFunctions}},
	{name: "6.12, arm64, by system calls", image: "trixie-arm64", options: systemCalls, lacks: []string{byFunctions}},
	{name: "5.10, lockdown=confidentiality", image: "bullseye-amd64", options: lockdown, lacks: append([]string{
		"network namespace cookie", "tracepoints: lock contention", "tracepoint: netlink extack",
	}, withoutInside...)},
	{name: "6.12, lockdown=confidentiality", image: "trixie-amd64", options: lockdown, lacks: withoutInside},
	{name: "newest, lockdown=confidentiality", image: "sid-amd64", options: lockdown, lacks: withoutInside},
	{name: "5.10, connector", image: "bullseye-amd64", options: "cniscope.source=connector", lacks: append([]string{
		"tracepoints: lock contention", "tracepoint: netlink extack",
	}, withoutProbe...)},
	{name: "6.12, connector", image: "trixie-amd64", options: "cniscope.source=connector", lacks: withoutProbe},
}

// byFunctions means that kernel functions can be traced; systemCalls disables that.
const (
	byChain     = "nftables chain that dropped packets"
	byFunctions = "inside of plugins by functions"
	systemCalls = "cniscope.way=system-calls"
)

// connected applies if the probe works.
const connected = "process connector in its place"

func init() {
	for i, k := range kernels {
		if !slices.Contains(k.lacks, "kernel probe") {
			kernels[i].lacks = append(slices.Clip(k.lacks), connected)
		}
	}
}

var withoutProbe = append([]string{
	"kernel probe", "function that started a command", "network namespace", "CPU time", "run-queue delay", "network namespace cookie",
}, withoutInside...)

// lockdown hides kernel memory from BPF programs.
const lockdown = "lockdown=confidentiality"

// withoutInside lists features that are missing if BPF programs follow processes without reading them.
var withoutInside = []string{
	byFunctions, "sleeps", "waits for locks on files, who has them", "waits for the kernel's own locks, who has them",
	"sysctls written", "network namespaces entered", "configuration and result",
	"connections, who answers", "connections refused", "first connection of a pod", "who dropped packets", byChain,
}

type kernel struct {
	name    string
	image   string // SUITE-ARCH, a directory of .cache/kernels
	options string // of its command line
	lacks   []string
	// restless is the noise of threads that wake one another, in instructions.
	restless float64
	programs map[string]string
	longer   time.Duration
}

func named(name string) kernel {
	return kernels[slices.IndexFunc(kernels, func(k kernel) bool { return k.name == name })]
}

func (k kernel) arch() string { return k.image[strings.LastIndexByte(k.image, '-')+1:] }

func (k kernel) file() string { return filepath.Join("../../.cache/kernels", k.image, "vmlinuz") }

// tries bounds boots: runs of BPF programs are skipped, and the connector misses plugins, by
// chance.
const (
	tries          = 6
	connectorTries = 12
)

func surprises(r reported) (all []string) {
	for _, f := range r.features {
		switch lacks := slices.Contains(r.kernel.lacks, f.Name); {
		case f.OK && lacks:
			all = append(all, f.Name+" is there, and was not expected")
		case !f.OK && !lacks:
			all = append(all, f.Name+": "+f.Detail)
		}
	}
	return all
}

// undisturbed must hold in every boot.
const undisturbed = "plugins run undisturbed"

// seen merges two boots: a skipped BPF run or a process that the connector missed is chance.
func seen(before, again reported) reported {
	for i, f := range before.features {
		if f.OK != (f.Name == undisturbed) {
			again.features[i] = f
		}
	}
	return again
}

func TestWhatNoBootSawIsMissing(t *testing.T) {
	report := func(ok ...bool) reported {
		return reported{features: []feature{{Name: "signal", OK: ok[0]}, {Name: "sleeps", OK: ok[1]}, {Name: undisturbed, OK: ok[2]}}}
	}
	r := seen(report(true, false, false), report(false, false, true))
	if got, want := surprises(r), []string{"sleeps: ", undisturbed + ": "}; !slices.Equal(got, want) {
		t.Errorf("%q is missing, want %q", got, want)
	}
}

func TestEveryKernelGivesWhatItCanAndLacksTheRestByName(t *testing.T) {
	var reports []reported
	for _, k := range kernels {
		t.Run(k.name, func(t *testing.T) {
			r := boot(t, k)
			most := tries
			if slices.Contains(k.lacks, "kernel probe") {
				most = connectorTries
			}
			for try := 1; try < most && len(r.missed) > 0 && len(surprises(r)) > 0; try++ {
				t.Logf("once more: %q", surprises(r))
				r = seen(r, boot(t, k))
			}
			reports = append(reports, r)
			for _, surprise := range surprises(r) {
				t.Error(surprise)
			}
			for _, f := range r.features {
				if !f.OK {
					t.Logf("off: %s: %s", f.Name, f.Detail)
				}
			}
			for _, name := range k.lacks {
				if !slices.ContainsFunc(r.features, func(f feature) bool { return f.Name == name }) {
					t.Errorf("%s: no such feature", name)
				}
			}
		})
	}
	if len(reports) < len(kernels) || t.Failed() {
		return
	}
	compare(t, table(reports))
}
