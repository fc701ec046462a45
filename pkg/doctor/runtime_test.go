package doctor

import (
	"errors"
	"io/fs"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/test/harness"
)

// No remedy restarts a runtime then.
func TestNoRuntimeAtAll(t *testing.T) {
	f := whole()
	f.Runtime = fact.Of[fact.Runtime]{Value: fact.Runtime{Absent: true}, Err: fs.ErrNotExist}
	f.CRI.Err, f.Folder.Value = errors.New("away"), fact.Folder{Dir: "/etc/cni/net.d", Missing: true}
	f.NRI.Value = fact.NRI{}
	r := Judge(f)
	if len(r.Findings) == 0 || r.Findings[0].Summary != "no container runtime found on this node" {
		t.Errorf("%+v", r.Findings)
	}
	for _, x := range r.Findings {
		x.Evidence = nil
		if said := all(x); strings.Contains(said, "systemctl") || strings.Contains(said, "containerd") {
			t.Errorf("%s: %q", x.Check, said)
		}
	}
}

// The check could not be made.
func TestAPodWithoutTheSocket(t *testing.T) {
	for name, change := range map[string]func(*fact.Facts){
		"whose node has it elsewhere": func(f *fact.Facts) { f.Runtime.Value.Hidden = "/run/k3s/containerd/containerd.sock" },
		"that cannot see its node":    func(f *fact.Facts) { f.Options.Address = "/run/k3s/containerd/containerd.sock" },
	} {
		f := whole()
		f.Contained = true
		f.Runtime.Err, f.CRI.Err = fs.ErrNotExist, errors.New("silent")
		change(f)
		r := Judge(f)
		if len(r.Findings) > 0 || r.ExitCode() != ExitUnchecked {
			t.Errorf("%s: %+v", name, r.Findings)
		}
		if why := r.Checks[0].Reason; !strings.Contains(why, "/run/k3s/containerd/containerd.sock") || !strings.Contains(why, "mount its directory") {
			t.Errorf("%s: %q", name, why)
		}
	}
}

// The kernel connects to a stopped runtime, or to one that never accepts.
func TestWaitNamesARuntimeThatDoesNotAnswer(t *testing.T) {
	for _, name := range []string{"containerd.sock", "crio.sock"} {
		o := Options{Address: filepath.Join(t.TempDir(), name), Patience: 300 * time.Millisecond, Wait: time.Nanosecond}
		l := harness.Must(net.Listen("unix", o.Address))(t)
		defer l.Close()
		missing, _ := Gates()[0].Wait(t.Context(), o, func(string) {})
		if !strings.HasSuffix(missing, " does not answer") {
			t.Errorf("%s: %s", name, missing)
		}
		if r := Examine(t.Context(), o); len(r.Findings) == 0 || r.Findings[0].Summary != missing {
			t.Errorf("%s: doctor: %+v", name, r.Findings)
		}
	}
}
