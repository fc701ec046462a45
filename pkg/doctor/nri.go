package doctor

import (
	"errors"

	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/doctor/fact"
)

// nriIsThere: NRI is switched on, its socket is listened on, and a cniscope that runs is
// registered. Without it calls are traced all the same, with less of a name.
func nriIsThere(f *fact.Facts) ([]Finding, error) {
	if f.Options.NRISocket == "" {
		return nil, notApplicable("cniscope's options leave NRI alone ([nri] enabled = false)")
	}
	if f.NRI.Err != nil {
		return nil, f.NRI.Err
	}
	enable := []string{
		"cniscope install adds a drop-in for containerd ([plugins.'io.containerd.nri.v1.nri'] disable = false); --dry-run shows it",
		"systemctl restart containerd",
	}
	switch n := f.NRI.Value; {
	case !n.Socket:
		return []Finding{{
			Level: Warning, Summary: "containerd's NRI is off: spans lack labels, addresses and the mark that the sandbox runs",
			Evidence: []string{fact.Sayf("there is no socket %s", f.Options.NRISocket), fact.Sayf("containerd %s; 1.7 has NRI off unless it is switched on", f.Runtime.Value.Version)},
			Remedy:   append(enable, "if its socket is another one, set [nri] socket in cniscope's options"),
		}}, nil
	case n.Sure && !n.Listening:
		return []Finding{{
			Level: Warning, Summary: "nobody listens on containerd's NRI socket",
			Evidence: []string{fact.Sayf("%s is there, left behind by an earlier containerd", f.Options.NRISocket)},
			Remedy:   enable,
		}}, nil
	}
	if errors.Is(f.Scope.Err, control.ErrNotRunning) {
		return []Finding{{
			Level: Note, Summary: "no cniscope observes this node", Evidence: []string{fact.Sayf("nobody answers in %s", f.Options.RunDir)},
			Remedy: []string{"cniscope install, or systemctl enable --now cniscope"},
		}}, nil
	}
	if f.Scope.Err != nil {
		return nil, f.Scope.Err
	}
	if s := f.Scope.Value.Node; s.NRI != "registered" {
		return []Finding{{
			Level: Warning, Summary: "cniscope runs, and is not registered with NRI",
			Evidence: []string{fact.Sayf("cniscope %s, process %d, says so", s.Version, s.PID)},
			Remedy:   []string{"see why: journalctl -u cniscope -e", fact.Sayf("is [nri] socket right? containerd listens on %s", f.Options.NRISocket)},
		}}, nil
	}
	return nil, nil
}
