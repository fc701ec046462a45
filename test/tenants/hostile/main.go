//go:build linux

// Command hostile is a tenant that tries to put spans into traces of others, and to remove theirs. It knows more than
// a real tenant: the current victim, with the ports of its connections (see Call).
//
//	hostile ATTACK makes one attack of attacks.go, once
//	hostile wait waits for commands by CRI's exec
//	hostile serve AT answers connections at an address
//	hostile flood makes all attacks, repeatedly
//	ANYTHING ELSE a program of that name, which exits at once
//
// Every name that it may choose contains mallory, so mallory elsewhere is a leak. Its loops have bounds in number and
// time, and it connects only to itself and the node's agent.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Call describes a victim. A plugin writes it during the call.
type Call struct {
	Container, NetNS, Namespace, Pod, IfName string
	// Connections are the plugin's connections, each as client and server address.
	Connections [][2]string
	// Sockets are its connected unix sockets.
	Sockets []string
	// Path is its CNI_PATH.
	Path string
}

const known = "/known/call"

func victim() (c Call, err error) {
	text, err := os.ReadFile(known)
	if err != nil {
		return c, err
	}
	return c, json.Unmarshal(text, &c)
}

type tenant struct {
	Call
	self string
	post *post
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
		os.Exit(1)
	}
}

func run() error {
	name := filepath.Base(os.Args[0])
	if len(os.Args) > 2 && os.Args[1] == "then" { // a program of any name that makes an attack
		return attack(os.Args[2:])
	}
	if name != "hostile" {
		return nil
	}
	return attack(os.Args[1:])
}

func attack(args []string) error {
	if len(args) == 0 {
		return errors.New("which attack?")
	}
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	t := &tenant{self: self, post: newPost()}
	defer t.post.close()
	if args[0] == "flood" {
		return t.flood(args[1:])
	}
	if args[0] == "serve" && len(args) == 2 {
		return t.serve(args[1])
	}
	if args[0] == "wait" {
		end := make(chan os.Signal, 1)
		signal.Notify(end, syscall.SIGTERM)
		<-end
		return nil
	}
	made := attacks[args[0]]
	if made == nil {
		return fmt.Errorf("no attack %s", args[0])
	}
	if t.Call, err = victim(); err != nil {
		return err
	}
	return made(t)
}

func (t *tenant) alias(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.Symlink(t.self, path); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

func (t *tenant) start(path string, env, args []string, attr *syscall.SysProcAttr) error {
	if err := t.alias(path); err != nil {
		return err
	}
	in, out, err := os.Pipe() // libcni passes the configuration by a pipe
	if err != nil {
		return err
	}
	defer in.Close()
	_, _ = fmt.Fprintf(out, `{"cniVersion":"1.0.0","name":"mallory","type":%q}`, filepath.Base(path))
	out.Close()
	p, err := os.StartProcess(path, append([]string{path}, args...), &os.ProcAttr{
		Env: env, Files: []*os.File{in, os.Stdout, os.Stderr}, Sys: attr,
	})
	if err != nil {
		return err
	}
	state, err := p.Wait()
	if err == nil && !state.Success() {
		err = fmt.Errorf("%s: %s", strings.Join(append([]string{path}, args...), " "), state)
	}
	return err
}

// hostNetwork is set for a tenant in the host's network, where it takes no address.
const hostNetwork = "MALLORY_HOST_NETWORK"

func claim(addresses ...string) error {
	if os.Getenv(hostNetwork) != "" {
		return errors.New("the network is the host's")
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	set := func(name string, request uint, fill func(*unix.Ifreq) error) error {
		r, err := unix.NewIfreq(name)
		if err == nil {
			err = fill(r)
		}
		if err != nil {
			return err
		}
		return unix.IoctlIfreq(fd, request, r)
	}
	err = set("lo", unix.SIOCSIFFLAGS, func(r *unix.Ifreq) error { r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING); return nil })
	for i, address := range addresses {
		a, invalid := netip.ParseAddr(address)
		if invalid != nil || !a.Is4() {
			continue
		}
		err = errors.Join(err, set(fmt.Sprintf("lo:%d", i), unix.SIOCSIFADDR, func(r *unix.Ifreq) error { return r.SetInet4Addr(a.AsSlice()) }))
	}
	return err
}

func until(is func() bool) bool {
	for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if is() {
			return true
		}
	}
	return false
}
