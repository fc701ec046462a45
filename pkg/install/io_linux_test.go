package install

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aymanbagabas/go-udiff"

	"github.com/cniscope/cniscope/test/disktest"
	"github.com/cniscope/cniscope/test/harness"
)

type work struct {
	begin func(n *node)
	do    func(n *node) error
}

func works() map[string]work {
	service := both(version("1.7"), edit)
	install := func(change func(*Options)) func(n *node) error {
		return func(n *node) error {
			p, err := New(n.Context(), n.options(change))
			return n.run(p, err)
		}
	}
	installed := func(n *node) { n.install(service) }
	return map[string]work{
		"installation": {func(*node) {}, install(service)},
		"upgrade":      {func(n *node) { installed(n); n.build("2") }, install(service)},
		"as plugin":    {func(n *node) { installed(n); n.build("2") }, install(both(service, plugin))},
		"removal": {installed, func(n *node) error {
			if !newTree(n.root, nil).exists(manifestFile) {
				return nil
			}
			p, err := NewRemoval(Options{Root: n.root, Disk: n.disk}, false)
			return n.run(p, err)
		}},
	}
}

func (n *node) run(p *Plan, err error) error {
	if err != nil || !p.Changes() {
		return err
	}
	notes, err := p.Apply(n.Context())
	n.said = strings.Join(notes, "\n")
	return err
}

// On a test disk, before a run.
func onDisk(t *testing.T, w work) (n *node, original string) {
	t.Helper()
	n = &node{T: t, root: filepath.Join(disktest.Folder(t), "node"), program: filepath.Join(disktest.Folder(t), "cniscope"), disk: disktest.Sound()}
	n.build("1")
	n.write("/etc/hostname", "node\n")
	n.write("/etc/containerd/config.toml", config17)
	n.write("/var/lib/dpkg", "")
	original = n.tree()
	w.begin(n)
	return n, original
}

// After any failing call the tree is as before or as after, as reported. The next run works, and a removal restores
// every byte.
func TestEachCallOfAnInstallationFailsOnce(t *testing.T) {
	harness.Slow(t)
	for name, w := range works() {
		t.Run(name, func(t *testing.T) {
			after := done(t, w)
			disktest.Sweep(t, disktest.Faults(), func(t *testing.T, at int, fault disktest.Fault) *disktest.Disk {
				n, original := onDisk(t, w)
				before := n.tree()
				d := n.failing(at, fault)
				switch err := w.do(n); {
				case err != nil:
					n.is("it failed, "+err.Error(), before)
				case n.tree() != after && !strings.Contains(n.said, "not all is tidied up"):
					n.is("it went well, "+n.said, after)
				}
				n.disk = disktest.Sound()
				n.goesOn(w, after, original)
				return d
			})
		})
	}
}

// Also by a dead disk or a power failure. The next run or removal works.
func TestAnInstallationIsKilledAtEachCall(t *testing.T) {
	harness.Slow(t)
	faults := []disktest.Fault{disktest.Killed}
	if disktest.Whole() {
		faults = append(faults, disktest.Forever)
	}
	for name, w := range works() {
		t.Run(name, func(t *testing.T) {
			after := done(t, w)
			disktest.Sweep(t, faults, func(t *testing.T, at int, fault disktest.Fault) *disktest.Disk {
				n, original := onDisk(t, w)
				d := n.failing(at, fault)
				_ = w.do(n)
				disktest.PowerCuts(t, d, func(folder, _ string) {
					m := &node{T: t, root: folder, program: n.program, disk: disktest.Sound()}
					m.goesOn(w, after, original)
				})
				disktest.PowerCuts(t, d, func(folder, _ string) {
					m := &node{T: t, root: folder, program: n.program, disk: disktest.Sound()}
					m.isRemoved(original)
				})
				return d
			})
		})
	}
}

func (n *node) failing(at int, fault disktest.Fault) *disktest.Disk {
	n.Helper()
	d := harness.Must(disktest.New(n.root, at, fault))(n)
	n.disk = d
	return d
}

func done(t *testing.T, w work) string {
	t.Helper()
	n, _ := onDisk(t, w)
	harness.Check(t, w.do(n))
	return n.tree()
}

func (n *node) goesOn(w work, after, original string) {
	n.Helper()
	if err := w.do(n); err != nil {
		n.Errorf("the next run: %v\n%s", err, n.tree())
		return
	}
	n.is("the next run", after)
	n.isRemoved(original)
}

func (n *node) isRemoved(original string) {
	n.Helper()
	if newTree(n.root, nil).exists(manifestFile) {
		n.uninstall(false)
	}
	n.is("taken away", original)
}

// Without empty directories, whose owner is unknown before the manifest exists.
func (n *node) is(what, want string) {
	n.Helper()
	n.sweep(want)
	now := n.tree()
	if now == want {
		return
	}
	n.Error(what + ":")
	for _, line := range strings.Split(udiff.Unified("want", "is", want, now), "\n") {
		if strings.HasPrefix(line, "+") || strings.HasPrefix(line, "-") {
			n.Logf("%.1000s", line)
		}
	}
}

func TestTheStartOfContainerdIsInUTC(t *testing.T) {
	l := harness.Must(net.Listen("unix", filepath.Join(t.TempDir(), "socket")))(t)
	defer l.Close()
	pid, since, err := running(t.Context(), l.Addr().String())
	harness.Check(t, err)
	harness.Equal(t, pid, os.Getpid())
	harness.Equal(t, since.Location(), time.UTC)
}
