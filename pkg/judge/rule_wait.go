package judge

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/text"
)

// heldLock: another process held a file lock. iptables (legacy) and host-local use one per node.
func heldLock(e *evidence) *finding {
	f, most := e.largest(CauseLock, Locks)
	if most == nil {
		return nil
	}
	_, longest, _ := e.waited(func(w *wait) bool { return w.part.Kind == Locks && w.part.Name == most.Name })
	var h *event.Actor
	if longest != nil {
		h = longest.what.(*model.Wait).Holder
	}
	f.Says, f.Remedy = f.Says+e.beside(), release(most.Name, h)
	switch {
	case h.Halted():
		f.Remedy = goOn(h.PID, h.Name, h.State, h.By)
	case path.Base(most.Name) == "xtables.lock":
		f.Remedy = "switch the node to iptables-nft, which takes no lock, or run kube-proxy in mode nftables, or raise its minSyncPeriod"
		f.Report = "aws/amazon-vpc-cni-k8s#2948"
	case longest != nil && e.image(longest).Run != nil && e.image(longest).Run.Plugin == "host-local":
		const own = "give host-local a smaller range, or put its dataDir on tmpfs: host-local reads one file per address under this lock"
		if h != nil && h.Name == "host-local" {
			f.Remedy = own
		} else if !isNamed(h) && path.IsAbs(most.Name) {
			f.Remedy = findHolder("fuser -v "+text.Shell(most.Name), own)
		}
		f.Report = "containernetworking/plugins#561"
	}
	return f
}

func isNamed(holder *event.Actor) bool { return holder != nil && holder.Name != "" && holder.PID != 0 }

func release(name string, h *event.Actor) string {
	const shorten = "shorten its work under the lock"
	switch {
	case isNamed(h):
		return fmt.Sprintf("kill %s (pid %d) if it hangs; otherwise %s", h.Name, h.PID, shorten)
	case name == "":
		return "start fewer pods at once: each wait was short, and there were many"
	case path.IsAbs(name):
		return findHolder(fmt.Sprintf("fuser -v %s, or lslocks,", text.Shell(name)), shorten)
	}
	return findHolder("lslocks", shorten)
}

func findHolder(command, otherwise string) string {
	return "run " + command + " to find the holder; if the holder hangs, kill it; otherwise " + otherwise
}

// contended: a plugin waited for a kernel lock, such as rtnl, which serializes network changes of the whole node.
func contended(e *evidence) *finding {
	f, most := e.largest(CauseKernelLock, KernelLocks)
	if f == nil {
		return nil
	}
	f.Says += e.beside()
	if most.Name == "rtnl" {
		f.Report = "aws/amazon-vpc-cni-k8s#3764"
	}
	return f
}

const dadMost = 3 * time.Second

// dad: a plugin waited for duplicate address detection (RFC 4862, 5.4).
func dad(e *evidence) *finding {
	f, _ := e.largest(CauseDAD, DAD)
	if f != nil {
		f.Report = "containernetworking/plugins#680"
	}
	return f
}

func slowMount(e *evidence) *finding {
	sum, longest, n := e.waited(func(w *wait) bool { _, is := w.what.(*model.Mount); return is })
	if longest == nil {
		return nil
	}
	return &finding{time: sum, kind: SystemCalls, candidate: longest.candidate, Verdict: Verdict{
		Cause:  CauseMount,
		Says:   fmt.Sprintf("%s waited for %s%s", longest.part.In, Mounting(longest.what.(*model.Mount)), times(n)),
		Remedy: CauseMount.remedy(),
	}}
}

// Mounting describes a mount: "mount of /run/netns/a (bind, from /proc/7/ns/net)".
func Mounting(m *model.Mount) string {
	said, more := "mount of ", slices.Clone(m.Flags)
	if m.Name == "umount2" {
		said = "unmount of "
	}
	if m.FSType != "" {
		more = append([]string{m.FSType}, more...)
	}
	if m.Source != "" && m.Source != "none" {
		more = append(more, "from "+m.Source)
	}
	if m.Error != "" {
		more = append(more, "failed with "+m.Error)
	}
	said += m.Target
	if len(more) > 0 {
		said += " (" + strings.Join(more, ", ") + ")"
	}
	return said
}

func mountPart(s *span, what model.What) Part {
	return Part{Kind: SystemCalls, Name: what.(*model.Mount).Name, In: cmp.Or(s.waiter(), s.image.Name)}
}

func haltedPlugin(e *evidence) *finding {
	f, _ := e.largest(CauseHalted, Halts)
	_, longest, _ := e.waited(func(w *wait) bool { return w.part.Kind == Halts })
	if f == nil || longest == nil {
		return nil
	}
	h := longest.what.(*model.Halt)
	f.Remedy, f.heldUp = goOn(e.image(longest).PID, e.spans[longest.span].waiter(), h.State, h.By), true
	return f
}

func systemCall(e *evidence) *finding {
	f, most := e.largest(CauseSystemCall, SystemCalls)
	if f == nil {
		return nil
	}
	opens := slices.Contains([]string{"openat", "write", "close"}, most.Name)
	switch dir := e.leaseDir(most.In); {
	case dir != "" && (opens || onDisk(most.Name)):
		f.Says += ", which waited for the file system of " + dir
		f.Remedy = "set dataDir of host-local to a directory on a faster disk, or start fewer pods at once: iostat -x 1 " +
			"and iotop show what writes; thaw the file system (fsfreeze -u) if something froze it"
	case onDisk(most.Name):
	case slices.Contains([]string{"sendto", "sendmsg", "sendmmsg"}, most.Name):
		f.Remedy = "run the plugin under strace -f -yy -e trace=" + most.Name + ", which names the socket; if it is " +
			"/dev/log, run systemctl status systemd-journald, which reads it"
	default:
		f.Remedy = ""
	}
	return f
}

func onDisk(call string) bool {
	return slices.Contains([]string{"fsync", "fdatasync", "sync", "unlinkat", "renameat", "renameat2", "mkdirat"}, call)
}

func (e *evidence) leaseDir(plugin string) string {
	if plugin != "host-local" {
		return ""
	}
	for i := range e.spans {
		if r := e.spans[i].image.Run; r != nil && r.Plugin == plugin && r.Configuration != nil {
			return cmp.Or(r.Configuration.DataDir, "/var/lib/cni/networks")
		}
	}
	return ""
}

func sleeping(e *evidence) *finding {
	f, most := e.largest(CauseSleep, Sleep)
	if f == nil {
		return nil
	}
	if im := e.Failed; im != nil && im.Signal == "SIGKILL" && im.Run != nil && im.Run.Plugin == most.Name {
		f.Remedy = fmt.Sprintf("read plugin %s's log of that time (log_file or similar in its CNI configuration): it still "+
			"polled or retried when it was killed", im.Run.Plugin)
	}
	for i := range e.spans {
		s := &e.spans[i]
		if s.agent != nil || s.image.Run == nil {
			continue
		}
		if c, n, slept := e.askedAgain(i); slept > f.time/2 {
			f.Says = fmt.Sprintf("plugin %s slept between its %d requests of %s", s.plugin, n, Peer(c))
			if s.in() != "" {
				f.Says += ", " + s.in()
			}
			f.Remedy = fmt.Sprintf("read the log of the program that listens at %s for that time: plugin %s may have "+
				"waited for another answer; if its requests succeeded, it limits their rate itself", c.Address, s.plugin)
			f.candidate = s.candidate
		} else if address := e.detecting(i, f.time/2); address != "" && s.image.Signal == "" {
			f.Remedy = fmt.Sprintf("read plugin %s's log: it may have waited for IPv6 duplicate address detection of %s; if it "+
				"did, set net.ipv6.conf.default.accept_dad = 0 in the pod's network namespace, unless IPAM may give two pods "+
				"the same address", s.plugin, address)
			f.candidate = s.candidate
		}
	}
	return f
}

// detecting returns an address whose detection may have been awaited.
func (e *evidence) detecting(at int, least time.Duration) string {
	im := e.spans[at].image
	for _, set := range model.Each[*model.Setting](im.Facts) {
		if strings.HasSuffix(set.Key, "/accept_dad") && set.Value == "0" {
			return ""
		}
	}
	for f, r := range model.Each[*model.Request](im.Facts) {
		if r.NetNS.Key == im.NetNS.Key && r.NetNS.Key != "" { // the node's
			continue
		}
		if r.Object == event.ObjectAddress && r.Verb == event.VerbAdd && strings.Contains(r.Address, ":") && !r.Failed() &&
			e.sleptBetween(at, f.When.End, f.When.End+int64(dadMost)) > least {
			return r.Address
		}
	}
	return ""
}

// askedAgain returns the last of n connections to one address with sleeps in most gaps.
func (e *evidence) askedAgain(at int) (last *model.Connection, n int, slept time.Duration) {
	asked := map[string][]*model.Fact{}
	for f, c := range model.Each[*model.Connection](e.spans[at].image.Facts) {
		if c.Exchange == nil && c.Error == "" {
			asked[c.Address] = append(asked[c.Address], f)
		}
	}
	for _, address := range slices.Sorted(maps.Keys(asked)) {
		all, sum, pauses := asked[address], time.Duration(0), 0
		for i, f := range all[1:] {
			if own := e.sleptBetween(at, all[i].When.End, f.When.Start); own > 0 {
				sum += own
				pauses++
			}
		}
		if gaps := len(all) - 1; gaps > 1 && 2*pauses > gaps && sum > slept {
			last, n, slept = all[len(all)-1].What.(*model.Connection), len(all), sum
		}
	}
	return last, n, slept
}

func (e *evidence) sleptBetween(at int, start, end int64) (sum time.Duration) {
	for i := range e.waits {
		w := &e.waits[i]
		slack := max(int64(time.Millisecond), (w.end-w.start)/10) // a busy CPU delays one of two threads that sleep
		within := start <= w.start+slack && w.end <= end+slack
		if within && w.span == at && w.part.Kind == Sleep {
			sum += time.Duration(w.own)
		}
	}
	return sum
}

func unexplained(e *evidence) *finding {
	f, _ := e.largest(CauseUnexplained, Unexplained, Waiting)
	if f != nil && e.call.Seen {
		f.Remedy = ""
	}
	return f
}
