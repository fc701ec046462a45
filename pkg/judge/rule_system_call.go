package judge

import (
	"cmp"
	"slices"
)

func systemCall(e *evidence) *finding {
	time, most := e.of(SystemCalls)
	if most == nil {
		return nil
	}
	f := &finding{
		Verdict: Verdict{Cause: CauseSystemCall, Says: most.String()},
		time:    time, kind: SystemCalls, candidate: most.Doubtful(),
	}
	opens := slices.Contains([]string{"openat", "write", "close"}, most.Name)
	switch dir := e.leaseDir(most.In); {
	case dir != "" && (opens || onDisk(most.Name)):
		f.Says += ", which waited for the file system of " + dir
		f.Remedy = "set dataDir of host-local to a directory on a faster disk, or start fewer pods at once: iostat -x 1 " +
			"and iotop show what writes; thaw the file system (fsfreeze -u) if something froze it"
	case onDisk(most.Name):
		f.Remedy = CauseSystemCall.remedy()
	case slices.Contains([]string{"sendto", "sendmsg", "sendmmsg"}, most.Name):
		f.Remedy = "run the plugin under strace -f -yy -e trace=" + most.Name + ", which names the socket; if it is " +
			"/dev/log, run systemctl status systemd-journald, which reads it"
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
