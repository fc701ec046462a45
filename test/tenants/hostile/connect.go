//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

type post struct {
	mu        sync.Mutex
	listeners map[string]net.Listener // nil where listening failed
}

func newPost() *post { return &post{listeners: map[string]net.Listener{}} }

func (p *post) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.listeners {
		if l != nil {
			l.Close()
		}
	}
}

func (p *post) listen(network, address string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l, tried := p.listeners[address]; tried {
		if l == nil {
			return errors.New("no listener")
		}
		return nil
	}
	l, err := (&net.ListenConfig{Control: shared}).Listen(context.Background(), network, address)
	p.listeners[address] = l
	if err != nil {
		p.listeners[address] = nil
		return err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go answer(c)
		}
	}()
	return nil
}

func shared(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) // fails for unix sockets
	})
}

// answer confirms a connection to the client, and waits until the client closes it.
func answer(c net.Conn) {
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	_, _ = c.Write([]byte{1})
	_, _ = c.Read(make([]byte, 1))
}

func (t *tenant) serve(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	defer l.Close()
	fmt.Println("listening")
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			_ = until(func() bool {
				call, err := victim()
				return err == nil && slices.ContainsFunc(call.Connections, func(pair [2]string) bool { return pair[0] == c.RemoteAddr().String() })
			})
			if call, err := victim(); err == nil {
				_ = (&tenant{Call: call, self: t.self}).mention()
			}
			_, _ = c.Read(make([]byte, 1))
		}()
	}
}

// reset closes a connection without TIME_WAIT.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	c.Close()
}

func (p *post) meet(client, server string) error {
	if err := p.listen("tcp", server); err != nil {
		return err
	}
	from, err := net.ResolveTCPAddr("tcp", client)
	if err != nil {
		return err
	}
	d := net.Dialer{LocalAddr: from, Timeout: time.Second, Control: shared}
	c, err := d.Dial("tcp", server)
	if err != nil {
		return err
	}
	_ = c.SetReadDeadline(time.Now().Add(time.Second))
	_, _ = c.Read(make([]byte, 1))
	reset(c)
	return nil
}

// pretend makes the victim's connections again, with the same ports and if possible addresses.
func (t *tenant) pretend() (made int, failed error) {
	for _, pair := range t.Connections {
		for _, addresses := range variants(pair) {
			if err := t.post.meet(addresses[0], addresses[1]); err != nil {
				failed = errors.Join(failed, err)
			} else {
				made++
			}
		}
	}
	return made, failed
}

func variants(pair [2]string) (all [][2]string) {
	client, err1 := netip.ParseAddrPort(pair[0])
	server, err2 := netip.ParseAddrPort(pair[1])
	if err1 != nil || err2 != nil {
		return nil
	}
	if client.Addr().IsLoopback() {
		_ = claim()
	} else {
		_ = claim(client.Addr().String(), server.Addr().String()) // most tenants may not
	}
	for _, at := range []string{server.Addr().String(), "127.0.0.1", "127.0.0.2", "::1", "::ffff:127.0.0.3"} {
		a := netip.MustParseAddr(at)
		from := a
		if at == server.Addr().String() {
			from = client.Addr()
		}
		all = append(all, [2]string{netip.AddrPortFrom(from, client.Port()).String(), netip.AddrPortFrom(a, server.Port()).String()})
	}
	return all
}

// sockets listens at the names of the node's unix sockets in its own namespaces, and connects.
func (t *tenant) sockets(kind func(string) bool) (made int, failed error) {
	for _, name := range t.Sockets {
		if !kind(name) {
			continue
		}
		if !strings.HasPrefix(name, "@") {
			_ = os.MkdirAll(filepath.Dir(name), 0o755)
		}
		if err := t.post.listen("unix", name); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		c, err := net.DialTimeout("unix", name, time.Second)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		_ = c.SetReadDeadline(time.Now().Add(time.Second))
		_, _ = c.Read(make([]byte, 1))
		c.Close()
		made++
	}
	return made, failed
}

func abstract(name string) bool { return strings.HasPrefix(name, "@") }
func path(name string) bool     { return !abstract(name) }
