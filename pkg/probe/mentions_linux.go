package probe

import (
	"fmt"
	"net/netip"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode"

	"github.com/cniscope/cniscope/pkg/event"
)

// What a server does may be done for any of the calls that are open, or for none. What
// it names is evidence: the id of a container, a pod, a namespace, an interface, an
// address. Here is known what names the open calls, and only the ids of those that an
// event mentions get into it.

const (
	// idPrefix is how much of a container's id is enough: as many digits as crictl and
	// docker show, by accident the same once in 10^15.
	idPrefix = 12
	// remember is how many sandboxes are known at once.
	remember = 1024
	// maxNames bounds interfaces, addresses and namespaces of one sandbox.
	maxNames = 32
)

// sandbox is what names one for which a call is open.
type sandbox struct {
	id, pod, netns, ifname string
	interfaces             []string
	addresses              []netip.Addr
	spaces                 []string // inode numbers of network namespaces
	// runs are how many of its plugins run; over is when the last was over.
	runs int
	over int64
}

// begin notes a plugin's run, end that it is over. Of the namespace in its environment a
// server may know only the number.
func (in *interior) begin(c *event.Call, pid uint32) {
	if c.ContainerID == "" {
		return
	}
	s := in.sandboxes[c.ContainerID]
	if s == nil {
		if len(in.sandboxes) >= remember {
			return
		}
		s = &sandbox{id: c.ContainerID}
		in.sandboxes[c.ContainerID] = s
	}
	s.pod, s.netns, s.ifname = c.Pod.Name, c.NetNS, c.IfName
	s.runs++
	if info, err := os.Stat(fmt.Sprintf("/proc/%d/root%s", pid, c.NetNS)); err == nil && c.NetNS != "" {
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			s.spaces = more(s.spaces, strconv.FormatUint(stat.Ino, 10))
		}
	}
}

func (in *interior) end(id string, now int64) {
	if s := in.sandboxes[id]; s != nil {
		s.runs--
		s.over = now
	}
}

// forgetSandboxes drops those whose calls have been over for as long as servers are
// followed.
func (in *interior) forgetSandboxes(now int64) {
	for id, s := range in.sandboxes {
		if s.runs <= 0 && now-s.over > int64(leave) {
			delete(in.sandboxes, id)
		}
	}
}

// mentions lists the sandboxes that texts, or namespaces, name; in the order of their
// ids.
func (in *interior) mentions(spaces []event.Namespace, texts ...string) (ids []string) {
	for id, s := range in.sandboxes {
		within := slices.ContainsFunc(spaces, func(ns event.Namespace) bool { return slices.Contains(s.spaces, ns.Label) })
		if within || slices.ContainsFunc(texts, s.isIn) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// isIn tells whether a text names the sandbox.
func (s *sandbox) isIn(text string) bool {
	switch {
	case len(text) < 3:
		return false
	case len(s.id) >= idPrefix && strings.Contains(text, s.id[:idPrefix]):
		return true
	case len(s.netns) > 1 && strings.Contains(text, path.Base(s.netns)):
		return true
	}
	for word := range strings.FieldsFuncSeq(text, separates) {
		switch {
		case s.pod != "" && namesPod(word, s.pod), slices.Contains(s.interfaces, word):
			return true
		}
		address, _, _ := strings.Cut(word, "%")
		if a, err := netip.ParseAddr(address); err == nil && slices.Contains(s.addresses, a) {
			return true
		}
	}
	return false
}

// separates words from one another; what names hold does not.
func separates(r rune) bool {
	return !strings.ContainsRune("-._:", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
}

// namesPod: a word is the pod's name, or an interface named after it: antrea's have six
// hexadecimal digits or more behind it. A pod of a similar name has five characters
// there.
func namesPod(word, pod string) bool {
	rest, ok := strings.CutPrefix(word, pod)
	if !ok || rest == "" {
		return ok
	}
	digits, ok := strings.CutPrefix(rest, "-")
	return ok && len(digits) >= 6 && strings.Trim(digits, "0123456789abcdef") == ""
}

// attribute fills in what a server's doing mentions. What mentions one sandbox is done
// for it, and then evidence in its turn.
func (in *interior) attribute(process event.Process, body event.Body) {
	p := in.processes[process]
	if p == nil {
		return
	}
	id := p.container
	if p.depth > 0 {
		var ids []string
		switch b := body.(type) {
		case *event.Request:
			b.Mentions = in.mentions([]event.Namespace{b.NetNS, b.Interface.NetNS}, b.Interface.Name, b.Interface.Peer, b.Address, b.Route)
			ids = b.Mentions
		case *event.Setting:
			b.Mentions = in.mentions([]event.Namespace{b.NetNS}, strings.Split(b.Key, "/")...)
			ids = b.Mentions
		}
		if len(ids) != 1 {
			return
		}
		id = ids[0]
	}
	in.learn(id, body)
}

// learn takes what a plugin itself did as evidence for what others do later: the
// namespaces it entered, the interfaces it made, the addresses it answered.
func (in *interior) learn(id string, body event.Body) {
	s := in.sandboxes[id]
	if s == nil {
		return
	}
	switch b := body.(type) {
	case *event.Enter:
		s.spaces = more(s.spaces, b.NetNS.Label)
	case *event.Request:
		if b.Name != "RTM_NEWLINK" || b.Interface.Kind == "" {
			return
		}
		for _, name := range []string{b.Interface.Name, b.Interface.Peer} {
			if name != "" && name != s.ifname && b.Interface.Kind != "bridge" {
				s.interfaces = more(s.interfaces, name)
			}
		}
	case *event.Result:
		for _, ip := range b.IPs {
			if p, err := netip.ParsePrefix(ip); err == nil {
				s.addresses = more(s.addresses, p.Addr())
			}
		}
	}
}

func more[T comparable](list []T, one T) []T {
	var none T
	if one == none || len(list) >= maxNames || slices.Contains(list, one) {
		return list
	}
	return append(list, one)
}
