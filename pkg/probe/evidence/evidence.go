// Package evidence tells for which sandbox an agent does something. What it does may be done
// for any of the calls that are open, or for none; what it names is evidence: the id of a
// container, its network namespace, an interface, an address. The package owns what names the
// open calls, and puts into an event only the ids of those that it mentions.
//
// Evidence is only what the runtime, the plugin or the kernel chose. The name of a pod or of a namespace is
// none: pods are called nat, add and eth0, and what one's owner writes into an annotation or a policy stands
// in the arguments of an agent's commands. Neither is what two sandboxes share.
package evidence

import (
	"crypto/sha1" // as the agents do whose interfaces are named by it; it protects nothing
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/cniscope/cniscope/pkg/event"
)

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

// Sandboxes are those for which a call is open, by container id.
type Sandboxes map[string]*sandbox

// sandbox is what names one.
type sandbox struct {
	id, pod string
	// hearsay: only runs that the runtime does not stand for named it.
	hearsay bool
	netns   string   // as much of its path as no other one has, see tail
	hashes  []string // of the id, in hexadecimal digits
	// told are the names of interfaces inside of the pod: who owns it may choose them. Where
	// there are too many, no interface is evidence.
	told []string
	// interfaces, addresses and namespaces (by key) are what its plugins made, answered and entered.
	interfaces []string
	addresses  []netip.Addr
	spaces     []string
	// runs are how many of its plugins run; over is when the last was over.
	runs int
	over int64
}

// Begin notes that a plugin's run began, and End that it is over. What is hearsay, of a run that
// the runtime does not stand for, is no evidence where a run of the runtime's names the same
// container; and it may have half of the 1024 places.
func (all Sandboxes) Begin(c *event.Call, hearsay bool) {
	if c.ContainerID == "" {
		return
	}
	s := all[c.ContainerID]
	if s != nil && s.hearsay != hearsay {
		if hearsay {
			return
		}
		s = nil
	}
	if s == nil {
		if all[c.ContainerID] == nil && (len(all) >= remember || hearsay && all.unvouched() >= remember/2) {
			return
		}
		short, long := sha1.Sum([]byte(c.ContainerID)), sha256.Sum256([]byte(c.ContainerID))
		s = &sandbox{id: c.ContainerID, hearsay: hearsay, hashes: []string{hex.EncodeToString(short[:]), hex.EncodeToString(long[:])}}
		all[c.ContainerID] = s
	}
	s.pod, s.netns = c.Pod.Name, tail(c.NetNS)
	s.told = more(s.told, c.IfName)
	s.runs++
}

// unvouched counts the sandboxes that are hearsay.
func (all Sandboxes) unvouched() (n int) {
	for _, s := range all {
		if s.hearsay {
			n++
		}
	}
	return n
}

// End is described at Begin.
func (all Sandboxes) End(id string, hearsay bool, now int64) {
	if s := all[id]; s != nil && s.hearsay == hearsay {
		s.runs--
		s.over = now
	}
}

// Forget drops those whose last run was over before that time.
func (all Sandboxes) Forget(before int64) {
	maps.DeleteFunc(all, func(_ string, s *sandbox) bool { return s.runs <= 0 && s.over < before })
}

// Mentions lists the sandboxes that namespaces, the addresses of a request, or texts name;
// in the order of their ids.
func (all Sandboxes) Mentions(spaces []event.Namespace, addresses []string, texts ...string) (ids []string) {
	add := func(found []string) {
		for _, id := range found {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	for _, ns := range spaces {
		if ns.Key != "" {
			add(all.only(func(s *sandbox) bool { return slices.Contains(s.spaces, ns.Key) }))
		}
	}
	for _, address := range addresses {
		if a, ok := parseAddress(address); ok {
			add(all.only(func(s *sandbox) bool { return slices.Contains(s.addresses, a) }))
		}
	}
	for _, text := range texts {
		if len(text) < 3 {
			continue
		}
		for id, s := range all {
			if s.isIn(text) {
				add([]string{id})
			}
		}
		for word := range strings.FieldsFuncSeq(text, separates) {
			if drawn(word) || endsInHash(word) {
				add(all.only(func(s *sandbox) bool { return slices.Contains(s.interfaces, word) || s.hashedIn(word) }))
			}
		}
	}
	slices.Sort(ids)
	return ids
}

// only is the sandbox of which that is so; none if it is of several.
func (all Sandboxes) only(is func(*sandbox) bool) (ids []string) {
	for id, s := range all {
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

// isIn reports whether a text holds the sandbox's id, which may be cut where it is one of
// hexadecimal digits, or its namespace.
func (s *sandbox) isIn(text string) bool {
	if len(s.id) >= idPrefix && strings.Trim(s.id, "0123456789abcdef") == "" {
		if strings.Contains(text, s.id[:idPrefix]) {
			return true
		}
	} else if holds(text, s.id) {
		return true
	}
	if guid.MatchString(s.netns) { // which everybody spells as he likes
		text = strings.ToLower(text)
	}
	return holds(text, s.netns)
}

// guid is a network namespace that has no path, only a number that was drawn for it.
var guid = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// hashedIn reports whether a word is the name of an interface that was made of the pod's name
// and a hash of the container's id: antrea's are the first eight bytes of the one, a hyphen,
// and the first six digits of the other. Only the hash proves anything.
func (s *sandbox) hashedIn(word string) bool {
	i := strings.LastIndexByte(word, '-')
	if i < 1 || len(word)-i <= hashPrefix || !strings.HasPrefix(s.pod, word[:i]) {
		return false
	}
	return slices.ContainsFunc(s.hashes, func(hash string) bool { return strings.HasPrefix(hash, word[i+1:]) })
}

// Doer is who does something.
type Doer struct {
	// Container is that of the call that it works for.
	Container string
	// Hearsay: the runtime does not stand for its plugin.
	Hearsay bool
	// Agent: it is none of a plugin's tree, but an agent, or of one's.
	Agent bool
}

// Attribute fills in what an agent's doing mentions. What mentions one sandbox is done
// for it, and then evidence in its turn. called is the name of the node's interface that a request
// gives the index of, as the kernel says; empty if that is not known.
func (all Sandboxes) Attribute(by Doer, body event.Body, called string) {
	id := by.Container
	if by.Agent {
		ids := all.mentioned(body, called)
		if len(ids) != 1 {
			return
		}
		id = ids[0]
	} else if s := all[id]; s != nil && s.hearsay != by.Hearsay {
		return
	}
	all.learn(id, body)
}

func (all Sandboxes) mentioned(body event.Body, called string) []string {
	switch b := body.(type) {
	case *event.Request:
		named := b.Interface.Name
		if b.Protocol == "bpf" { // by the kernel: in a pod that is what its owner likes
			named = ""
		}
		b.Mentions = all.Mentions([]event.Namespace{b.NetNS, b.Interface.NetNS}, []string{b.Address, b.Route}, called, named, b.Interface.Peer, b.Path)
		return b.Mentions
	case *event.Setting:
		b.Mentions = all.Mentions([]event.Namespace{b.NetNS}, nil, strings.Split(b.Key, "/")...)
		return b.Mentions
	}
	return nil
}

// learn takes what a plugin itself did as evidence for what others do later: the
// namespaces it entered, the interfaces it made, the addresses it answered.
func (all Sandboxes) learn(id string, body event.Body) {
	s := all[id]
	if s == nil {
		return
	}
	switch b := body.(type) {
	case *event.Enter:
		s.spaces = more(s.spaces, b.NetNS.Key)
	case *event.Request:
		if b.Object != event.ObjectLink || b.Verb != event.VerbAdd || b.Interface.Kind == "" {
			return
		}
		for _, name := range []string{b.Interface.Name, b.Interface.Peer} {
			// What is called eth0 or br0 is nobody's in particular.
			if drawnBeside(name, s.pod) && b.Interface.Kind != "bridge" && len(s.told) < maxNames && !slices.Contains(s.told, name) {
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

// Opened notes that a network namespace was opened by this path. An agent that is told no more
// than the path of a sandbox's works on it by its descriptor.
func (all Sandboxes) Opened(file string, ns event.Namespace) {
	for _, s := range all {
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

// tail is how a namespace's file is known by whatever way it is reached: by its last names
// that somebody drew ("cni-786877ce-…"), else by all of its path ("/proc/77/ns/net"). One that has no path
// is known by its number.
func tail(file string) string {
	if number := strings.ToLower(file); guid.MatchString(number) {
		return number
	}
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

// drawn reports whether a name was drawn or computed and not chosen: it holds six hexadecimal
// digits in a row, and they are no word.
func drawn(name string) bool { return drawnBeside(name, "") }

// drawnBeside reports whether a name was drawn that may hold what of another name has room in it: a plugin
// may call an interface by the first letters of its pod's name, which its owner chose, or shares
// with others that were drawn together (a ReplicaSet's).
func drawnBeside(name, chosen string) bool {
	for run := range strings.FieldsFuncSeq(name, notHexadecimal) {
		if len(run) >= hashPrefix && strings.ContainsAny(run, "0123456789") && !shares(run, chosen) {
			return true
		}
	}
	return false
}

// shares reports whether six letters in a row of a name are another one's, too.
func shares(name, other string) bool {
	for i := hashPrefix; i <= len(name); i++ {
		if strings.Contains(other, name[i-hashPrefix:i]) {
			return true
		}
	}
	return false
}

func notHexadecimal(r rune) bool { return (r < '0' || r > '9') && (r < 'a' || r > 'f') }

// endsInHash reports whether what follows a name's last hyphen may be a hash. drawn takes one in 360
// for a word, since it has no digit among its first six; here that does no harm, for whoever asks
// compares it with the hashes that there are.
func endsInHash(name string) bool {
	end := name[strings.LastIndexByte(name, '-')+1:]
	return len(end) >= hashPrefix && len(end) < len(name) && strings.Trim(end, "0123456789abcdef") == ""
}

// holds reports whether a text holds a name, and not only as a part of a longer one. In front
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

// within reports whether a byte may be one of a longer name.
func within(b byte) bool {
	return b == '-' || b == '_' || b == '.' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= 0x80
}

// separates words from one another; what names hold does not.
func separates(r rune) bool {
	return !strings.ContainsRune("-._:", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
}

// parseAddress reads an address with or without its prefix; false for those that everybody has.
func parseAddress(s string) (netip.Addr, bool) {
	s, _, _ = strings.Cut(s, "/")
	a, err := netip.ParseAddr(s)
	return a.WithZone("").Unmap(), err == nil && a.IsGlobalUnicast()
}
