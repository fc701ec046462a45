//go:build linux

// Noise runs a command on a busy machine, beside busy loops, idle processes and runs of a foreign CNI plugin. It
// exits with the command's exit code. All its processes end with it, even if it is killed.
//
//	noise PLUGIN COMMAND [ARGUMENT]...
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

const (
	busyLoops = 4
	idle      = 3000
	every     = 300 * time.Millisecond
)

// One thread forks all children: the kernel sends the parent-death signal when the forking thread exits.
func init() { runtime.LockOSThread() }

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: noise PLUGIN COMMAND [ARGUMENT]...")
		os.Exit(2)
	}
	code, err := run(os.Args[1], os.Args[2:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "noise:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func run(plugin string, command []string) (code int, err error) {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)

	crowd, end, err := idlers()
	if err != nil {
		return 0, err
	}
	started := []*exec.Cmd{crowd}
	defer func() {
		_ = end.Close()
		for _, c := range started[1:] {
			_ = c.Process.Kill()
		}
		for _, c := range started {
			_ = c.Wait()
		}
	}()
	for range busyLoops {
		c := exec.Command("sh", "-c", "while :; do :; done")
		c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := c.Start(); err != nil {
			return 0, err
		}
		started = append(started, c)
	}

	tests := exec.Command(command[0], command[1:]...)
	tests.Stdin, tests.Stdout, tests.Stderr = os.Stdin, os.Stdout, os.Stderr
	tests.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := tests.Start(); err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- tests.Wait() }()
	for {
		select {
		case err := <-ended:
			if exit := new(exec.ExitError); errors.As(err, &exit) {
				return max(exit.ExitCode(), 1), nil
			}
			return 0, err
		case s := <-asked:
			_ = syscall.Kill(-tests.Process.Pid, s.(syscall.Signal))
		case <-time.After(every):
			if err := foreign(plugin); err != nil {
				return 0, errors.Join(err, syscall.Kill(-tests.Process.Pid, syscall.SIGTERM))
			}
		}
	}
}

// idlers starts idle processes. Each reads a pipe until the other end closes.
func idlers() (parent *exec.Cmd, end *os.File, err error) {
	pipe, end, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer pipe.Close()
	parent = exec.Command("sh", "-c", fmt.Sprintf(`i=0; while [ $i -lt %d ]; do read -r _ <&3 & i=$((i+1)); done; echo; exec >&-; wait`, idle))
	parent.ExtraFiles = []*os.File{pipe}
	there, err := parent.StdoutPipe()
	if err == nil {
		err = parent.Start()
	}
	if err == nil {
		_, err = there.Read(make([]byte, 1))
	}
	return parent, end, err
}

// foreign runs the plugin without a configuration, so it fails at once. An error means that the plugin did not start.
func foreign(plugin string) error {
	c := exec.Command(plugin)
	c.Env = append(os.Environ(), "CNI_COMMAND=ADD", "CNI_CONTAINERID=foreign", "CNI_IFNAME=eth0", "CNI_PATH=/opt/cni/bin")
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.Run(); c.ProcessState == nil {
		return err
	}
	return nil
}
