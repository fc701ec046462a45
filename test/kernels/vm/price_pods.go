//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// laterPod is a pod whose first connection comes after its setup.
type laterPod struct {
	number  int
	netns   string
	connect chan struct{}
	ended   chan error
}

func newPod(number int) (*laterPod, error) {
	p := &laterPod{number: number, connect: make(chan struct{}), ended: make(chan error, 1)}
	entered := make(chan error)
	go func() {
		runtime.LockOSThread() // the namespace ends with the thread
		err := errors.Join(unix.Unshare(unix.CLONE_NEWNET), loopback(true))
		p.netns = fmt.Sprintf("/proc/%d/task/%d/ns/net", os.Getpid(), unix.Gettid())
		entered <- err
		<-p.connect
		p.ended <- dialOwn()
	}()
	return p, <-entered
}

// plugin runs one of the pod's plugins, the first in its network namespace.
func (p *laterPod) plugin(first bool) error {
	cmd := command("pod")
	for i, v := range cmd.Env {
		if strings.HasPrefix(v, "CNI_CONTAINERID=") {
			cmd.Env[i] = fmt.Sprintf("%s-%d", v, p.number)
		}
	}
	if first {
		cmd.Env = append(cmd.Env, "POD_NETNS="+p.netns)
	}
	return succeed(cmd)
}

// pods have setups, and connections after them. It returns each BPF program's minimum, and how many pods were followed.
func (m meter) pods(count int) (programs map[string]programRun, followed int, err error) {
	var all []*laterPod
	ran := 0
	programs, err = m.cheapest(count, func() error {
		if ran%runs == 0 {
			p, err := newPod(len(all))
			if err != nil {
				return err
			}
			all = append(all, p)
		}
		ran++
		return all[len(all)-1].plugin(ran%runs == 1)
	})
	if err != nil {
		return nil, 0, err
	}
	time.Sleep(over)
	if followed, err = entriesOf("pods"); err != nil {
		return nil, 0, err
	}
	for _, p := range all {
		close(p.connect)
		err = errors.Join(err, <-p.ended)
	}
	time.Sleep(over)
	return programs, followed, err
}

// entriesOf counts the entries of BPF maps with a name.
func entriesOf(name string) (n int, err error) {
	for id := ebpf.MapID(0); ; {
		next, err := ebpf.MapGetNextID(id)
		if errors.Is(err, os.ErrNotExist) {
			return n, nil
		}
		if err != nil {
			return 0, err
		}
		id = next
		m, err := ebpf.NewMapFromID(id)
		if err != nil {
			return 0, err
		}
		if info, err := m.Info(); err == nil && info.Name == name {
			var key any
			for {
				following, err := m.NextKeyBytes(key)
				if err != nil || following == nil {
					break
				}
				key = following
				n++
			}
		}
		_ = m.Close()
	}
}
