package judge

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/text"
)

// Wants returns a call and the look that its verdict needs, or nil.
func Wants(op *model.Operation) (*model.Call, *event.Want) {
	for _, call := range op.Calls {
		failed := failedRun(call)
		if failed == nil && call.Undone != 0 && call.Broken == nil && mute(call) == nil && bare(call) == nil {
			return call, &event.Want{Kind: event.FoundImage}
		}
		var k *KnownFailure
		if failed != nil {
			k = known(failed)
		}
		if k == nil || k.Find == "" {
			if name := actsFor(call); name != "" {
				return call, &event.Want{Kind: event.FoundProcess, Name: name}
			}
			continue
		}
		w := &event.Want{Kind: k.Find, Network: call.Network, Name: k.Name}
		if w.Name == strings.ToUpper(w.Name) { // a placeholder
			w.Name = ""
		}
		if c := failed.Run.Configuration; c != nil {
			w.Network = cmp.Or(c.Network, w.Network)
			if w.Kind == event.FoundMaster {
				w.Name = cmp.Or(w.Name, c.Master)
			}
		}
		return call, w
	}
	return nil, nil
}

func (e *evidence) found(v *Verdict) {
	f := e.call.Found
	if f == nil {
		return
	}
	if f.Unseen != "" && f.Kind == event.FoundImage {
		return
	}
	if f.Unseen != "" {
		v.Says += fmt.Sprintf("; %s was not looked at: %s", cmp.Or(f.Name, "the "+string(f.Kind)), f.Unseen)
		return
	}
	switch f.Kind {
	case event.FoundBridge, event.FoundPorts:
		v.Own = cmp.Or(e.bridge(v, f), v.Own)
	case event.FoundMaster:
		master(v, f)
	case event.FoundLeases:
		leases(v, f)
	case event.FoundImage:
		sandboxImage(v, f)
	case event.FoundModule:
		module(v, f)
	case event.FoundToken:
		token(v, f, e.call.End+e.wall)
	}
}

// bridge returns Verdict.Own if it names pods.
func (e *evidence) bridge(v *Verdict, f *event.Found) (own string) {
	if f.Absent {
		v.Says += fmt.Sprintf("; %s does not exist any more", f.Name)
		v.Remedy = ""
		return ""
	}
	others := e.notMade(f.Others)
	ports := f.Ports - (len(f.Others) - len(others))
	addresses := cmp.Or(strings.Join(f.Addresses, ", "), "no address")
	says := fmt.Sprintf("; %s has %s and %s", f.Name, addresses, count(ports, "port"))
	own = v.Says + says
	if len(f.Pods) > 0 {
		says += fmt.Sprintf(", %d of pods: %s", f.OfPods, pods(f))
	}
	v.Says += says
	switch {
	case f.Kind == event.FoundPorts || f.OfPods > 0:
	case f.Type != "bridge":
		v.Remedy = ""
	case ports == 0:
		v.Remedy = fmt.Sprintf("run ip link delete %s, because this bridge has no port; the next ADD creates it with this "+
			"node's address", text.Shell(f.Name))
	default:
		v.Remedy = fmt.Sprintf("run ip -d link show master %s to list its ports, which belong to no known pod; if no "+
			"program uses them, run ip link delete %[1]s", text.Shell(f.Name))
	}
	if len(f.Pods) == 0 {
		return ""
	}
	return own
}

func count(n int, thing string) string {
	if n == 0 {
		return "no " + thing
	}
	return text.Count(n, thing)
}

// notMade leaves out ports of this call: a failed ADD keeps one until its DEL.
func (e *evidence) notMade(ports []string) (others []string) {
	made := map[string]bool{}
	for _, run := range e.call.Runs {
		run.Walk(func(im *model.Image) {
			for _, r := range model.Each[*model.Request](im.Facts) {
				made[r.Interface.Name], made[r.Interface.Peer] = true, true
			}
		})
	}
	for _, port := range ports {
		if !made[port] {
			others = append(others, port)
		}
	}
	return others
}

func pods(f *event.Found) string {
	var names []string
	for _, p := range f.Pods {
		names = append(names, p.Namespace+"/"+p.Name)
	}
	if more := f.OfPods - len(f.Pods); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

func master(v *Verdict, f *event.Found) {
	switch {
	case f.Absent:
		v.Says += fmt.Sprintf("; %s does not exist", f.Name)
		v.Remedy = ""
	case f.Master == "":
		v.Says += fmt.Sprintf("; %s is not a port of another interface", f.Name)
	default:
		v.Says += fmt.Sprintf("; %s is a port of %s (%s)", f.Name, f.Master, f.MasterType)
		if f.MasterType == "bridge" || f.MasterType == "bond" {
			v.Remedy = fmt.Sprintf("set master in the CNI configuration to %s, whose port %s is", f.Master, f.Name)
		}
	}
}

func leases(v *Verdict, f *event.Found) {
	v.Says += fmt.Sprintf("; network \"%s\" has %s", f.Name, count(f.Leased, "lease"))
	switch {
	case f.Stale > 0:
		v.Says += fmt.Sprintf(", %d of them stale", f.Stale)
		v.Remedy = "run cniscope doctor: leaked-leases has the command that frees the stale leases"
	case f.Leased > 0:
		v.Remedy = fmt.Sprintf("give network \"%s\" a range larger than the kubelet's maxPods: no lease is stale", f.Name)
	}
}

func sandboxImage(v *Verdict, f *event.Found) {
	if f.Absent {
		v.Says += "; no image is pinned, so the node may lack the runtime's sandbox image"
		v.Remedy = "read journalctl -u containerd of that time; if it cannot pull the sandbox image, run ctr -n k8s.io " +
			"images import with a file of it, or set sandbox in [plugins.'io.containerd.cri.v1.images'.pinned_images] to " +
			"an image that the node has"
		v.Report = "rootless-containers/usernetes#240"
	}
}

func module(v *Verdict, f *event.Found) {
	switch f.Module {
	case event.ModuleLoaded:
		v.Says += fmt.Sprintf("; the kernel has module %s", f.Name)
		v.Remedy = ""
	case event.ModuleThere:
		v.Says += fmt.Sprintf("; module %s is not loaded", f.Name)
		v.Remedy = fmt.Sprintf("run modprobe %s; list it in /etc/modules-load.d, too", text.Shell(f.Name))
	case event.ModuleAbsent:
		v.Says += fmt.Sprintf("; kernel %s has no module %s", f.Kernel, f.Name)
		v.Remedy = fmt.Sprintf("install the package with the further modules of kernel %s (linux-modules-extra, "+
			"kernel-modules-extra), or start a kernel that has %s", f.Kernel, f.Name)
	case event.ModuleRemoved:
		v.Says += fmt.Sprintf("; /lib/modules has no directory for the running kernel %s", f.Kernel)
		v.Remedy = "drain the node (kubectl drain NODE --ignore-daemonsets) and restart it: an upgrade removed the modules of the " +
			"running kernel"
	}
}

func token(v *Verdict, f *event.Found, now int64) {
	left := text.Round(time.Duration(f.Expires*int64(time.Second) - now))
	switch {
	case f.Expires == 0:
		v.Says += fmt.Sprintf("; the token in %s does not expire", f.Name)
	case left < 0:
		v.Says += fmt.Sprintf("; the token in %s expired %s before", f.Name, (-left).Round(time.Second))
	default:
		v.Says += fmt.Sprintf("; the token in %s is valid for another %s, so it was revoked", f.Name, left.Round(time.Second))
	}
}
