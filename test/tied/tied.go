//go:build linux

// Package tied starts processes that end with this process.
package tied

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// Start starts a command that the kernel kills when this process ends. The kernel sends the signal when the thread
// that forked ends (PR_SET_PDEATHSIG, prctl(2)), and a thread ends with a goroutine that does not unlock it. So one
// thread, which never ends, starts all commands.
func Start(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	done := make(chan error)
	starter() <- func() { done <- cmd.Start() }
	return <-done
}

var starter = sync.OnceValue(func() chan<- func() {
	starts := make(chan func())
	go func() {
		runtime.LockOSThread()
		for start := range starts {
			start()
		}
	}()
	return starts
})
