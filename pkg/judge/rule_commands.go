package judge

import (
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/timeline"
)

// native is what a program does better that calls the kernel or the service itself, by the
// command's name.
func native(command string) string {
	switch command = strings.ToLower(command); {
	case strings.HasPrefix(command, "iptables"), strings.HasPrefix(command, "ip6tables"):
		return "nftables over netlink (bridge and portmap: the nftables backends of CNI plugins 1.5 and later)"
	case command == "ip", command == "tc", command == "bridge", command == "conntrack", command == "ipset":
		return "netlink"
	case strings.HasPrefix(command, "ovs-"):
		return "OVSDB and OpenFlow from a client library"
	case command == "sysctl":
		return "a write below /proc/sys"
	case isPowerShell(command):
		return "HCN (hcsshim) instead of PowerShell"
	}
	return ""
}

func instead(command string) string {
	if n := native(command); n != "" {
		return "replace it: " + n
	}
	return "find out why it takes that long: its arguments and its parent are in the trace"
}

// first is the command that the plugin or the agent itself ran, of "agentd > sh > sleep":
// whoever wrote that one is to ask.
func first(name string) string {
	parts := strings.Split(name, " > ")
	return parts[min(len(parts)-1, 1)]
}

// slowCommand: one external command, or one again and again.
func slowCommand(m *matter) *finding {
	_, most := m.of(Commands)
	if most == nil {
		return nil
	}
	command := most.Name
	if strings.Contains(command, " > ") {
		command = first(command)
	}
	f := &finding{Verdict{Cause: CauseCommand, Says: "in " + most.String(), Remedy: instead(command)}, most.Time}
	if strings.Contains(most.Name, " > ") {
		f.Report = "antrea-io/antrea#4859"
	}
	return f
}

// many is how many commands a call runs at least that has many: an ordinary ADD of bridge
// and portmap has 36.
const many = 40

// manyCommands: none of them is slow, but there are so many.
func manyCommands(m *matter) *finding {
	sum, _ := m.of(Commands)
	n, names := 0, map[string]int{}
	for _, im := range m.images {
		if im.Run == nil {
			n++
			names[im.Name]++
		}
	}
	if n < many {
		return nil
	}
	most := ""
	for name, count := range names {
		if count > names[most] || count == names[most] && name < most {
			most = name
		}
	}
	return &finding{Verdict{
		Cause: CauseCommands, Says: fmt.Sprintf("in %d commands, %d of them %s", n, names[most], most),
		Remedy: instead(most), Report: "containernetworking/plugins#510",
	}, sum}
}

func isPowerShell(command string) bool {
	command = strings.TrimSuffix(strings.ToLower(path.Base(command)), ".exe")
	return command == "powershell" || command == "pwsh"
}

// powerShell takes a second or two to start, each time.
func powerShell(m *matter) *finding {
	var sum time.Duration
	n := 0
	for _, im := range m.images {
		if im.Run == nil && isPowerShell(im.Name) {
			n++
			sum += took(im)
		}
	}
	if n == 0 {
		return nil
	}
	return &finding{Verdict{
		Cause: CausePowerShell, Says: fmt.Sprintf("in PowerShell, started %d times", n),
		Remedy: "each start loads .NET and its modules anew: use " + native("powershell") + ", or keep one running",
		Report: "antrea-io/antrea#4859",
	}, min(sum, m.Took)}
}

// quantum is how long iptables sleeps before it tries again: a second (iptables/xshared.c,
// xtables_lock; nft.c after EAGAIN). Timers are never early and rarely late by a tenth.
const quantum = time.Second

// iptablesRetry: iptables found somebody else at work, and slept.
func iptablesRetry(m *matter) *finding {
	var sum time.Duration
	steps := 0
	for _, im := range m.images {
		if im.Run != nil || im.Inside == nil || !strings.Contains(im.Name, "tables") {
			continue
		}
		for _, i := range im.Inside.Asleep {
			if d := time.Duration(i.End - i.Start); d >= quantum*9/10 {
				sum += d
				steps += int((d + quantum/2) / quantum)
			}
		}
	}
	if steps == 0 {
		return nil
	}
	return &finding{Verdict{
		Cause: CauseRetry, Says: fmt.Sprintf("in iptables, which was not let in and tried again every second (%d times)", steps),
		Remedy: "something else changes the same tables; use one backend (nft or legacy) on the whole node, and iptables 1.8.9 or later",
		Report: "istio/istio#51739",
	}, min(sum, m.Took)}
}

// hostLocalScan: host-local looks at every address that is taken, one file each, under its
// lock.
func hostLocalScan(m *matter) *finding {
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Name == "host-local" && (p.Kind == Plugins || p.Kind == Unexplained) || p.In == "host-local" && p.Kind == SystemCalls {
			return &finding{Verdict{
				Cause: CauseScan, Says: "in host-local, which reads one file for each address that is taken",
				Remedy: "smaller ranges, a faster disk (dataDir on tmpfs), or delete what was left in its folder by pods that are gone",
				Report: "Azure/azure-container-networking#2817",
			}, p.Time}
		}
	}
	return nil
}

// outlived finds what still ran after its run was over.
func outlived(run *timeline.Image) *timeline.Image {
	var found *timeline.Image
	for _, child := range run.Children {
		child.Walk(func(im *timeline.Image) {
			if im.Outlived && (found == nil || im.End > found.End) {
				found = im
			}
		})
	}
	return found
}

// leakedChild: the runtime reads a plugin's standard output to its end, and that comes when
// the last process closes it.
func leakedChild(m *matter) *finding {
	for i, run := range m.call.Runs {
		child := outlived(run)
		if child == nil || !child.Ended {
			continue
		}
		next := m.call.End
		if i+1 < len(m.call.Runs) {
			next = m.call.Runs[i+1].Start
		}
		gap := time.Duration(next - run.End)
		// The next plugin begins when the child is gone, give or take what it takes to start.
		if late := time.Duration(next - child.End); gap <= 0 || late < 0 || late > gap/5+20*time.Millisecond {
			continue
		}
		return &finding{Verdict{
			Cause:  CauseLeakedChild,
			Says:   fmt.Sprintf("waiting for %s (pid %d), which %s left behind with its standard output open", child.Name, child.PID, run.Run.Plugin),
			Remedy: "the plugin must give its children another standard output, or wait for them",
		}, gap}
	}
	return nil
}
