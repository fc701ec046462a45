package control

import (
	"fmt"
	"os"
	"strings"
)

// Now fills in what the process of the call does at this moment. wchan needs
// CAP_SYS_PTRACE.
func (c *Call) Now() {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.PID))
	if err != nil {
		return
	}
	if i := strings.LastIndexByte(string(stat), ')'); i >= 0 && len(stat) > i+2 {
		c.State = string(stat[i+2])
	}
	if wchan, err := os.ReadFile(fmt.Sprintf("/proc/%d/wchan", c.PID)); err == nil && string(wchan) != "0" {
		c.Waits = string(wchan)
	}
}
