//go:build linux

package e2e

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// listener receives the kernel's announcements of links, addresses, routes and neighbors in one network namespace.
type listener struct {
	where string
	ns    string // its inode
	conn  *netlink.Conn
	heard chan error
	found []notice
}

// notice is one announcement.
type notice struct {
	where    string
	ns       string
	kind     netlink.HeaderType
	pid, seq uint32 // of the causing request; 0 without one
	index    uint32
	// link is the index of a veth's peer, master that of a port's bridge.
	link, master            uint32
	called                  string
	address, route, gateway string
}

// listen starts listening in a file's namespace.
func listen(where, file string) (*listener, error) {
	ns, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	var stat unix.Stat_t
	if err := unix.Fstat(int(ns.Fd()), &stat); err != nil {
		return nil, err
	}
	const groups = unix.RTMGRP_LINK | unix.RTMGRP_NEIGH | unix.RTMGRP_IPV4_IFADDR | unix.RTMGRP_IPV4_ROUTE |
		unix.RTMGRP_IPV6_IFADDR | unix.RTMGRP_IPV6_ROUTE
	c, err := netlink.Dial(unix.NETLINK_ROUTE, &netlink.Config{NetNS: int(ns.Fd()), Groups: groups})
	if err != nil {
		return nil, fmt.Errorf("listening in %s: %w", file, err)
	}
	l := &listener{where: where, ns: strconv.FormatUint(stat.Ino, 10), conn: c, heard: make(chan error, 1)}
	if err := c.SetReadBuffer(1 << 20); err != nil {
		c.Close()
		return nil, err
	}
	go func() { l.heard <- l.hear() }()
	return l, nil
}

func (l *listener) close() { _ = l.conn.Close() }

func (l *listener) hear() error {
	for {
		messages, err := l.conn.Receive()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("listening in the %s's namespace: %w", l.where, err)
		}
		for _, m := range messages {
			l.found = append(l.found, l.notice(m))
		}
	}
}

// all stops listening and returns all notices, which the kernel queued before it answered the requests.
func (l *listener) all() ([]notice, error) {
	if err := l.conn.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
		return nil, err
	}
	err := <-l.heard
	return l.found, err
}

// notice parses an announcement independently of cniscope.
func (l *listener) notice(m netlink.Message) notice {
	n := notice{where: l.where, ns: l.ns, kind: m.Header.Type, pid: m.Header.PID, seq: m.Header.Sequence}
	b := m.Data
	head := map[string]int{"LINK": 16, "ADDR": 8, "ROUTE": 12, "NEIGH": 12}[n.object()]
	if head == 0 || len(b) < head {
		return n
	}
	if object := n.object(); object != "ROUTE" {
		n.index = binary.NativeEndian.Uint32(b[4:])
	} else {
		n.route = "default"
	}
	all, err := netlink.UnmarshalAttributes(b[head:])
	if err != nil {
		return n
	}
	for _, a := range all {
		switch n.object() {
		case "LINK":
			switch a.Type {
			case unix.IFLA_IFNAME:
				n.called = string(bytes.TrimRight(a.Data, "\x00"))
			case unix.IFLA_LINK:
				n.link = binary.NativeEndian.Uint32(a.Data)
			case unix.IFLA_MASTER:
				n.master = binary.NativeEndian.Uint32(a.Data)
			}
		case "ADDR":
			if a.Type == unix.IFA_LOCAL || a.Type == unix.IFA_ADDRESS && n.address == "" {
				n.address = fmt.Sprintf("%s/%d", net.IP(a.Data), b[1])
			}
		case "ROUTE":
			switch a.Type {
			case unix.RTA_DST:
				n.route = fmt.Sprintf("%s/%d", net.IP(a.Data), b[1])
			case unix.RTA_GATEWAY:
				n.gateway = net.IP(a.Data).String()
			case unix.RTA_OIF:
				n.index = binary.NativeEndian.Uint32(a.Data)
			}
		case "NEIGH":
			if a.Type == unix.NDA_DST {
				n.address = net.IP(a.Data).String()
			}
		}
	}
	return n
}

// object returns the notice's object in rtnetlink's words.
func (n notice) object() string {
	return map[netlink.HeaderType]string{0: "LINK", 4: "ADDR", 8: "ROUTE", 12: "NEIGH"}[(n.kind-unix.RTM_BASE)&^3]
}

func (n notice) name() string {
	verb := "RTM_NEW"
	if n.kind&3 == 1 {
		verb = "RTM_DEL"
	}
	return verb + n.object()
}

func (n notice) String() string {
	words := []string{n.where, n.name(), fmt.Sprintf("on %d %s", n.index, n.called)}
	for _, word := range []string{n.address, n.route, n.gateway} {
		if word != "" {
			words = append(words, word)
		}
	}
	return strings.Join(append(words, fmt.Sprintf("(port %d, message %d)", n.pid, n.seq)), " ")
}

// about returns the notices of a bridge and its ports.
func about(all []notice, bridge string) []notice {
	var ours []uint32
	for _, n := range all {
		if n.called == bridge {
			ours = append(ours, n.index)
		}
	}
	for _, n := range all {
		if n.master != 0 && slices.Contains(ours, n.master) {
			ours = append(ours, n.index)
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(n notice) bool { return !slices.Contains(ours, n.index) })
}
