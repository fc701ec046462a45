package probe

import (
	"crypto/sha1" // as the agents do whose interfaces are named by it; it protects nothing
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/cniscope/cniscope/pkg/event"
)

// What a server does may be done for any of the calls that are open, or for none. What it
// names is evidence: the id of a container, its network namespace, an interface, an address.
// Here is known what names the open calls, and only the ids of those that an event mentions
// get into it.
//
// Evidence is only what the runtime, the plugin or the kernel chose. The name of a pod or of
// a namespace is none: pods are called nat, add and eth0, and what one's owner writes into an
// annotation or a policy stands in the arguments of an agent's commands. Neither is what two
// sandboxes share.

const (
	// idPrefix is how much of a container's id is enough: as many digits as crictl and
	// docker show, by accident the same once in 10^15.
	idPrefix = 12
	// hashPrefix is how many digits of a hash are: antrea takes six, others more.
	hashPrefix = 6
	// remember is how many sandboxes are known at once.
	remember = 1024
	// maxNames bounds interfaces, addresses and namespaces of one sandbox.
	maxNames = 32
)

// sandbox is what names one for which a call is open.
type sandbox struct {
	id, pod string
	// hearsay: only runs that the runtime does not stand for named it.
	hearsay bool
	netns   string   // as much of its path as no other one has, see tail
	hashes  []string // of the id, in hexadecimal digits
	// told are the names of interfaces inside of the pod: who owns it may choose them. Where
	// there are too many, no interface is evidence.
	told []string
	// interfaces, addresses and namespaces (by key) are what its plugins made, answered and
	// entered.
	interfaces []string
	addresses  []netip.Addr
	spaces     []string
	// runs are how many of its plugins run; over is when the last was over.
	runs int
	over int64
}

// begin notes a plugin's run, end that it is over. What is hearsay, of a run that the runtime
// does not stand for, is no evidence where a run of the runtime's names the same container; and
// of all there is room for half as many.
func (in *interior) begin(c *event.Call, hearsay bool) {
	if c.ContainerID == "" {
		return
	}
	s := in.sandboxes[c.ContainerID]
	if s != nil && s.hearsay != hearsay {
		if hearsay {
			return
		}
		s = nil
	}
	if s == nil {
		if in.sandboxes[c.ContainerID] == nil && (len(in.sandboxes) >= remember || hearsay && in.unvouched() >= remember/2) {
			return
		}
		short, long := sha1.Sum([]byte(c.ContainerID)), sha256.Sum256([]byte(c.ContainerID))
		s = &sandbox{id: c.ContainerID, hearsay: hearsay, hashes: []string{hex.EncodeToString(short[:]), hex.EncodeToString(long[:])}}
		in.sandboxes[c.ContainerID] = s
	}
	s.pod, s.netns = c.Pod.Name, tail(c.NetNS)
	s.told = more(s.told, c.IfName)
	s.runs++
}

// tail is how a namespace's file is known by whatever way it is reached: by its last names
// that somebody drew ("cni-786877ce-…"), else by all of its path ("/proc/77/ns/net").
func tail(file string) string {
	if file = path.Clean(file); !path.IsAbs(file) || file == "/" {
		return ""
	}
	for i := len(file) - 1; i >= 0; i-- {
		if file[i] == '/' && drawn(file[i+1:]) {
			return file[i+1:]
		}
	}
	return file
}

// drawn tells whether a name was drawn or computed and not chosen: it holds six hexadecimal
// digits in a row, and they are no word.
func drawn(name string) bool {
	run, digit := 0, false
	for _, r := range name {
		switch {
		case r >= '0' && r <= '9':
			run, digit = run+1, true
		case r >= 'a' && r <= 'f':
			run++
		default:
			run, digit = 0, false
		}
		if run >= hashPrefix && digit {
			return true
		}
	}
	return false
}

// unvouched counts the sandboxes that are hearsay.
func (in *interior) unvouched() (n int) {
	for _, s := range in.sandboxes {
		if s.hearsay {
			n++
		}
	}
	return n
}

func (in *interior) end(id string, hearsay bool, now int64) {
	if s := in.sandboxes[id]; s != nil && s.hearsay == hearsay {
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

// mentions lists the sandboxes that namespaces, the addresses of a request, or texts name;
// in the order of their ids.
func (in *interior) mentions(spaces []event.Namespace, addresses []string, texts ...string) (ids []string) {
	add := func(found []string) {
		for _, id := range found {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	for _, ns := range spaces {
		if ns.Key != "" {
			add(in.only(func(s *sandbox) bool { return slices.Contains(s.spaces, ns.Key) }))
		}
	}
	for _, address := range addresses {
		if a, ok := parseAddress(address); ok {
			add(in.only(func(s *sandbox) bool { return slices.Contains(s.addresses, a) }))
		}
	}
	for _, text := range texts {
		if len(text) < 3 {
			continue
		}
		for id, s := range in.sandboxes {
			if s.isIn(text) {
				add([]string{id})
			}
		}
		for word := range strings.FieldsFuncSeq(text, separates) {
			if drawn(word) {
				add(in.only(func(s *sandbox) bool { return slices.Contains(s.interfaces, word) || s.hashedIn(word) }))
			}
		}
	}
	slices.Sort(ids)
	return ids
}

// only is the sandbox of which that is so; none if it is of several.
func (in *interior) only(is func(*sandbox) bool) (ids []string) {
	for id, s := range in.sandboxes {
		if !is(s) {
			continue
		}
		if len(ids) > 0 {
			return nil
		}
		ids = append(ids, id)
	}
	return ids
}

// isIn tells whether a text holds the sandbox's id, which may be cut where it is one of
// hexadecimal digits, or its namespace.
func (s *sandbox) isIn(text string) bool {
	if len(s.id) >= idPrefix && strings.Trim(s.id, "0123456789abcdef") == "" {
		if strings.Contains(text, s.id[:idPrefix]) {
			return true
		}
	} else if holds(text, s.id) {
		return true
	}
	return holds(text, s.netns)
}

// holds tells whether a text holds a name, and not only as a part of a longer one. In front
// of a path may be another.
func holds(text, name string) bool {
	for at := 0; name != ""; at++ {
		i := strings.Index(text[at:], name)
		if i < 0 {
			return false
		}
		at += i
		before, after := text[:at], text[at+len(name):]
		if (name[0] == '/' || before == "" || !within(before[len(before)-1])) && (after == "" || !within(after[0])) {
			return true
		}
	}
	return false
}

// within tells whether a byte may be one of a longer name.
func within(b byte) bool {
	return b == '-' || b == '_' || b == '.' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= 0x80
}

// separates words from one another; what names hold does not.
func separates(r rune) bool {
	return !strings.ContainsRune("-._:", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
}

// hashedIn tells whether a word is the name of an interface that was made of the pod's name
// and a hash of the container's id: antrea's are the first eight bytes of the one, a hyphen,
// and the first six digits of the other. Only the hash proves anything.
func (s *sandbox) hashedIn(word string) bool {
	i := strings.LastIndexByte(word, '-')
	if i < 1 || len(word)-i <= hashPrefix || !strings.HasPrefix(s.pod, word[:i]) {
		return false
	}
	return slices.ContainsFunc(s.hashes, func(hash string) bool { return strings.HasPrefix(hash, word[i+1:]) })
}

// parseAddress reads an address with or without its prefix; false for those that everybody
// has.
func parseAddress(s string) (netip.Addr, bool) {
	s, _, _ = strings.Cut(s, "/")
	a, err := netip.ParseAddr(s)
	return a.WithZone("").Unmap(), err == nil && a.IsGlobalUnicast()
}

// attribute fills in what a server's doing mentions. What mentions one sandbox is done
// for it, and then evidence in its turn.
func (in *interior) attribute(process event.Process, body event.Body) {
	p := in.processes[process]
	if p == nil {
		return
	}
	id := p.container
	if s := in.sandboxes[id]; p.depth == 0 && s != nil && s.hearsay != p.hearsay {
		return
	}
	if p.depth > 0 {
		var ids []string
		switch b := body.(type) {
		case *event.Request:
			b.Mentions = in.mentions([]event.Namespace{b.NetNS, b.Interface.NetNS}, []string{b.Address, b.Route}, b.Interface.Name, b.Interface.Peer)
			ids = b.Mentions
		case *event.Setting:
			b.Mentions = in.mentions([]event.Namespace{b.NetNS}, nil, strings.Split(b.Key, "/")...)
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
		s.spaces = more(s.spaces, b.NetNS.Key)
	case *event.Request:
		if b.Name != "RTM_NEWLINK" || b.Interface.Kind == "" {
			return
		}
		for _, name := range []string{b.Interface.Name, b.Interface.Peer} {
			// What is called eth0 or br0 is nobody's in particular.
			if drawn(name) && b.Interface.Kind != "bridge" && len(s.told) < maxNames && !slices.Contains(s.told, name) {
				s.interfaces = more(s.interfaces, name)
			}
		}
	case *event.Result:
		for _, ip := range b.IPs {
			if a, ok := parseAddress(ip); ok {
				s.addresses = more(s.addresses, a)
			}
		}
	}
}

// openedSpace takes that a namespace was opened by the path of a sandbox's: a server that
// only does so, and is told no more than the path, works on it by its descriptor.
func (in *interior) openedSpace(file string, ns event.Namespace) {
	for _, s := range in.sandboxes {
		if ns.Key != "" && holds(file, s.netns) {
			s.spaces = more(s.spaces, ns.Key)
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
