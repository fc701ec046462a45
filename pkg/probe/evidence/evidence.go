// Package evidence attributes an agent's actions to sandboxes with a call in progress, by a container id, network
// namespace, interface, or address.
//
// Evidence is only a name that the runtime, the plugin or the kernel chose for a single sandbox.
package evidence

import (
	"crypto/sha1" // as agents name interfaces; protects nothing
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
	// as long as in crictl: collisions have a chance of 10^-15
	idPrefix = 12
	// as long as antrea's
	hashPrefix = 6
	remember   = 1024
	// bound of each list
	maxNames = 32
)

// Sandboxes are by container id.
type Sandboxes map[string]*sandbox

type sandbox struct {
	id, pod string
	// only runs that the runtime did not start named it
	hearsay bool
	netns   string   // the distinctive part, see tail
	hashes  []string // of the id, hexadecimal
	// names inside the pod, which its owner may choose; beyond maxNames no interface is evidence
	told []string
	// names made by the sandbox's plugins; spaces are keys of network namespaces
	interfaces []string
	addresses  []netip.Addr
	spaces     []string
	runs       int
	over       int64
	antrea     bool // its plugin
}

// Begin records a plugin run. The runtime's replace hearsay, which may use half of the 1024 places.
func (all Sandboxes) Begin(c *event.Call, plugin string, hearsay bool) {
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
	s.antrea = s.antrea || plugin == "antrea"
	s.runs++
}

func (all Sandboxes) unvouched() (n int) {
	for _, s := range all {
		if s.hearsay {
			n++
		}
	}
	return n
}

// End records a run's end.
func (all Sandboxes) End(id string, hearsay bool, now int64) {
	if s := all[id]; s != nil && s.hearsay == hearsay {
		s.runs--
		s.over = now
	}
}

// Forget drops sandboxes without runs since before.
func (all Sandboxes) Forget(before int64) {
	maps.DeleteFunc(all, func(_ string, s *sandbox) bool { return s.runs <= 0 && s.over < before })
}

// Mentions returns the named sandboxes' ids, sorted.
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

// only returns the one sandbox that matches; none if several match.
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

// isIn finds the id, possibly cut if hexadecimal, or the namespace.
func (s *sandbox) isIn(text string) bool {
	if len(s.id) >= idPrefix && strings.Trim(s.id, "0123456789abcdef") == "" {
		if strings.Contains(text, s.id[:idPrefix]) {
			return true
		}
	} else if holds(text, s.id) {
		return true
	}
	if guid.MatchString(s.netns) {
		text = strings.ToLower(text)
	}
	return holds(text, s.netns)
}

var guid = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// hashedIn matches antrea's interfaces: eight bytes of the pod's name, a hyphen, six digits of the id's hash.
func (s *sandbox) hashedIn(word string) bool {
	i := strings.LastIndexByte(word, '-')
	if i < 1 || len(word)-i <= hashPrefix || !strings.HasPrefix(s.pod, word[:i]) {
		return false
	}
	return slices.ContainsFunc(s.hashes, func(hash string) bool { return strings.HasPrefix(hash, word[i+1:]) })
}

// another stands for a sandbox without a call in progress.
const another = "another"

var antrea = regexp.MustCompile(`^.{1,8}-([0-9a-f]{6})$`)

// anothers reports whether a word is antrea's interface of an unknown sandbox.
func (all Sandboxes) anothers(word string) (is bool) {
	hash := antrea.FindStringSubmatch(word)
	if hash == nil || !drawn(word) {
		return false
	}
	for _, s := range all {
		is = is || s.antrea
		if slices.ContainsFunc(s.hashes, func(h string) bool { return strings.HasPrefix(h, hash[1]) }) {
			return false
		}
	}
	return is
}

// Doer is the process of an action.
type Doer struct {
	Container string
	// the runtime did not start its plugin
	Hearsay bool
	// an agent, not a plugin
	Agent bool
}

// Attribute sets the mentioned sandboxes. An action for one sandbox becomes evidence. called is the interface of a
// request by index.
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
		if b.Protocol == "bpf" { // in a pod the owner's choice
			named = ""
		}
		b.Mentions = all.Mentions([]event.Namespace{b.NetNS, b.Interface.NetNS}, []string{b.Address, b.Route}, called, named, b.Interface.Peer, b.Path)
		if len(b.Mentions) == 0 && (all.anothers(called) || all.anothers(named)) {
			b.Mentions = []string{another}
			return nil
		}
		return b.Mentions
	case *event.Setting:
		b.Mentions = all.Mentions([]event.Namespace{b.NetNS}, nil, strings.Split(b.Key, "/")...)
		return b.Mentions
	}
	return nil
}

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
			// eth0 and br0 are not distinctive
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

// Opened is for agents that use a descriptor later.
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

// tail starts at a path's last random name ("cni-786877ce-…"), else it is the path ("/proc/77/ns/net").
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

// drawn: random or computed, with six hexadecimal digits in a row, one of them decimal.
func drawn(name string) bool { return drawnBeside(name, "") }

// drawnBeside ignores letters of another name, such as the pod's, which its owner chose or a ReplicaSet's pods share.
func drawnBeside(name, chosen string) bool {
	for run := range strings.FieldsFuncSeq(name, notHexadecimal) {
		if len(run) >= hashPrefix && strings.ContainsAny(run, "0123456789") && !shares(run, chosen) {
			return true
		}
	}
	return false
}

func shares(name, other string) bool {
	for i := hashPrefix; i <= len(name); i++ {
		if strings.Contains(other, name[i-hashPrefix:i]) {
			return true
		}
	}
	return false
}

func notHexadecimal(r rune) bool { return (r < '0' || r > '9') && (r < 'a' || r > 'f') }

// endsInHash may be wrong, but drawn misses one hash in 360: compare with known hashes.
func endsInHash(name string) bool {
	end := name[strings.LastIndexByte(name, '-')+1:]
	return len(end) >= hashPrefix && len(end) < len(name) && strings.Trim(end, "0123456789abcdef") == ""
}

// holds excludes parts of longer names, but a path may follow another.
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

func within(b byte) bool {
	return b == '-' || b == '_' || b == '.' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= 0x80
}

func separates(r rune) bool {
	return !strings.ContainsRune("-._:", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
}

func parseAddress(s string) (netip.Addr, bool) {
	s, _, _ = strings.Cut(s, "/")
	a, err := netip.ParseAddr(s)
	return a.WithZone("").Unmap(), err == nil && a.IsGlobalUnicast()
}
