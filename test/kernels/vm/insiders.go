//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	lockFile = "/tmp/lock"
	agent    = "/tmp/agent.sock"
	server   = "127.0.0.1:7777"
	deaf     = "/tmp/deaf.sock"
	noServer = "127.0.0.1:7"
	setting  = "net/ipv4/ip_forward"
	answer   = `{"cniVersion":"1.0.0","interfaces":[{"name":"eth0"}],"ips":[{"address":"10.1.2.3/24"}]}`
)

var insiders = map[string]func() error{
	"locking": func() error {
		fd, err := unix.Open(lockFile, unix.O_RDWR, 0)
		if err != nil {
			return err
		}
		return unix.Flock(fd, unix.LOCK_EX)
	},
	"sleeping": func() error {
		time.Sleep(80 * time.Millisecond)
		return nil
	},
	"setting": func() error {
		if err := enter(); err != nil {
			return err
		}
		return os.WriteFile("/proc/sys/"+setting, []byte("1\n"), 0)
	},
	"answering": func() error {
		if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
			return err
		}
		_, err := fmt.Println(answer)
		return err
	},
	"dialling": func() error {
		for network, address := range map[string]string{"unix": agent, "tcp": server} {
			c, err := net.Dial(network, address)
			if err != nil {
				return err
			}
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
		}
		return nil
	},
	"refused": func() error {
		_, err1 := net.Dial("unix", deaf)
		_, err2 := net.Dial("tcp", noServer)
		if err1 == nil || err2 == nil {
			return errors.New("a server answered")
		}
		return nil
	},
	"first": func() error {
		if err := enter(); err != nil {
			return err
		}
		if err := loopback(true); err != nil {
			return err
		}
		return dialOwn()
	},
	"contending": contending,
}

func enter() error {
	runtime.LockOSThread()
	return unix.Unshare(unix.CLONE_NEWNET)
}

func dialOwn() error {
	l, err := net.Listen("tcp", "127.0.0.1:80")
	if err == nil {
		_, err = net.Dial("tcp", l.Addr().String())
	}
	return err
}

func loopback(up bool) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if up {
		lo.SetUint16(unix.IFF_UP)
	}
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}

// world has the insiders' lock and servers.
type world struct {
	lock    *os.File
	servers []net.Listener
}

func makeWorld() (w world, err error) {
	if err := loopback(true); err != nil {
		return w, err
	}
	if w.lock, err = os.Create(lockFile); err != nil {
		return w, err
	}
	if err := unix.Flock(int(w.lock.Fd()), unix.LOCK_EX); err != nil {
		return w, err
	}
	for network, address := range map[string]string{"unix": agent, "tcp": server} {
		l, err := net.Listen(network, address)
		if err != nil {
			return w, err
		}
		w.servers = append(w.servers, l)
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_ = c.Close()
			}
		}()
	}
	return w, nil
}

// unlock releases the lock once a process waits for it.
func (w world) unlock() {
	for {
		if locks, _ := os.ReadFile("/proc/locks"); strings.Contains(string(locks), "->") {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	_ = unix.Flock(int(w.lock.Fd()), unix.LOCK_UN)
}
