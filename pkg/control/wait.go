package control

import "github.com/cniscope/cniscope/pkg/procfs"

// Now fills in what the call's process does at this moment, where /proc says so. Waits takes
// CAP_SYS_PTRACE.
func (c *Call) Now() {
	stat, err := procfs.StatOf(int(c.PID))
	if err != nil {
		return
	}
	c.State, c.Waits = stat.State, procfs.Wchan(int(c.PID))
}
