package kernels

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// kernels are what is booted: columns of testdata/features.md. kernels.mk reads here which images
// to fetch.
var kernels = []kernel{
	{name: "5.10", image: "bullseye-amd64", lacks: []string{
		"network namespace cookie",
		"waits for the kernel's own locks, who has them",
		"tracepoints: lock contention",
		"tracepoint: netlink extack", byFunctions,
	}},
	{name: "6.1", image: "bookworm-amd64", lacks: []string{byFunctions}}, // it has the deadlock
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

// byFunctions is where functions of the kernel can be attached to, and systemCalls has them left alone: then what
// plugins do is seen by their system calls.
const (
	byFunctions = "inside of plugins by functions"
	systemCalls = "cniscope.way=system-calls"
)

// connected is what there is where the probe observes.
const connected = "process connector in its place"

func init() {
	for i, k := range kernels {
		if !slices.Contains(k.lacks, "kernel probe") {
			kernels[i].lacks = append(slices.Clip(k.lacks), connected)
		}
	}
}

// withoutProbe is what there is not where the probe cannot be loaded, and the process connector observes.
var withoutProbe = append([]string{
	"kernel probe", "network namespace", "CPU time", "run-queue delay", "network namespace cookie",
}, withoutInside...)

// lockdown is an option of the kernel: it keeps its memory from BPF programs.
const lockdown = "lockdown=confidentiality"

// withoutInside is what there is not where BPF programs follow processes, and may not look into them.
var withoutInside = []string{
	byFunctions, "sleeps", "waits for locks on files, who has them", "waits for the kernel's own locks, who has them",
	"sysctls written", "network namespaces entered", "configuration and result",
	"connections, who answers", "connections refused", "first connection of a pod",
}

// kernel is one of the machines.
type kernel struct {
	name    string
	image   string // SUITE-ARCH, a folder of .cache/kernels
	options string // of its command line
	lacks   []string
	// restless is by how many instructions two measurements of threads that wake one another differ.
	restless float64
	// programs are those that the machine has besides: names, and what they are built of.
	programs map[string]string
	// longer is how much longer than others the machine may take.
	longer time.Duration
}

// named is the machine of that name.
func named(name string) kernel {
	return kernels[slices.IndexFunc(kernels, func(k kernel) bool { return k.name == name })]
}

func (k kernel) arch() string { return k.image[strings.LastIndexByte(k.image, '-')+1:] }

func (k kernel) file() string { return filepath.Join("../../.cache/kernels", k.image, "vmlinuz") }

// tries are how often a machine is booted at most. A kernel that preempts BPF programs does not run them for others
// meanwhile, and says so. The process connector sees most plugins and not all, each time others, and boots quickly.
const (
	tries          = 6
	connectorTries = 12
)

// surprises are where a machine differs from what is known of its kernel.
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

// undisturbed is what every boot must say: if one lacks it that is a fault, whatever was missed.
const undisturbed = "plugins run undisturbed"

// seen is what either boot of a machine saw. What a BPF program that was not run would have seen, and what was gone
// before the process connector looked at it, is chance: here it is what can be seen at all. How much the connector sees
// is for make test-connector.
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
			k.needed(t)
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
