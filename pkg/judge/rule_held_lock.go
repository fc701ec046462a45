package judge

import (
	"fmt"
	"path"

	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/text"
)

// heldLock: another process held a file lock. iptables (legacy) and host-local use one per node.
func heldLock(e *evidence) *finding {
	time, most := e.of(Locks)
	if most == nil {
		return nil
	}
	_, longest, _ := e.waited(func(w *wait) bool { return w.part.Kind == Locks && w.part.Name == most.Name })
	f := &finding{Verdict: Verdict{
		Cause: CauseLock, Says: most.String() + e.beside(), Remedy: release(most.Name, longest),
	}, time: time, kind: Locks, candidate: most.Doubtful()}
	switch {
	case longest != nil && longest.what.(*model.Wait).Holder.Halted():
		h := longest.what.(*model.Wait).Holder
		f.Remedy = goOn(h.PID, h.Name, h.State, h.By)
	case path.Base(most.Name) == "xtables.lock":
		f.Remedy = "switch the node to iptables-nft, which takes no lock, or run kube-proxy in mode nftables, or raise its minSyncPeriod"
		f.Report = "aws/amazon-vpc-cni-k8s#2948"
	case longest != nil && e.image(longest).Run != nil && e.image(longest).Run.Plugin == "host-local":
		const own = "give host-local a smaller range, or put its dataDir on tmpfs: host-local reads one file per address under this lock"
		switch h := longest.what.(*model.Wait).Holder; {
		case h != nil && h.Name == "host-local":
			f.Remedy = own
		case (h == nil || h.Name == "" || h.PID == 0) && path.IsAbs(most.Name):
			f.Remedy = fmt.Sprintf("run fuser -v %s to find the holder; if the holder hangs, kill it; otherwise %s", text.Shell(most.Name), own)
		}
		f.Report = "containernetworking/plugins#561"
	}
	return f
}

func release(name string, longest *wait) string {
	if longest != nil {
		if h := longest.what.(*model.Wait).Holder; h != nil && h.Name != "" && h.PID != 0 {
			return fmt.Sprintf("kill %s (pid %d) if it hangs; otherwise shorten its work under the lock", h.Name, h.PID)
		}
	}
	if name == "" {
		return "start fewer pods at once: each wait was short, and there were many"
	}
	look := "lslocks"
	if path.IsAbs(name) {
		look = fmt.Sprintf("fuser -v %s, or lslocks,", text.Shell(name))
	}
	return fmt.Sprintf("run %s to find the holder; if the holder hangs, kill it; otherwise shorten its work under the "+
		"lock", look)
}
