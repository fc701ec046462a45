package decode

import (
	"encoding/binary"
	"strings"
	"unicode"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/text"
)

// Sizes in records of bpf(2).
const (
	attrMax     = 64
	programName = 16
)

// programRequest describes a command of bpf(2), whose fields have fixed offsets in union bpf_attr.
type programRequest struct {
	name   string
	object event.Object
	verb   event.Verb
}

var programRequests = map[uint64]programRequest{
	unix.BPF_MAP_CREATE:  {"BPF_MAP_CREATE", event.ObjectMap, event.VerbAdd},
	unix.BPF_PROG_LOAD:   {"BPF_PROG_LOAD", event.ObjectProgram, event.VerbAdd},
	unix.BPF_OBJ_PIN:     {"BPF_OBJ_PIN", event.ObjectPin, event.VerbAdd},
	unix.BPF_PROG_ATTACH: {"BPF_PROG_ATTACH", event.ObjectAttachment, event.VerbAdd},
	unix.BPF_PROG_DETACH: {"BPF_PROG_DETACH", event.ObjectAttachment, event.VerbDelete},
	unix.BPF_LINK_CREATE: {"BPF_LINK_CREATE", event.ObjectAttachment, event.VerbAdd},
	unix.BPF_LINK_UPDATE: {"BPF_LINK_UPDATE", event.ObjectAttachment, event.VerbChange},
	unix.BPF_LINK_DETACH: {"BPF_LINK_DETACH", event.ObjectAttachment, event.VerbDelete},
}

func (d *Decoder) program(r record) ([]event.Body, bool) {
	asks, is := programRequests[r.Args[0]]
	if !is || len(r.data) < attrMax+programName {
		return nil, false
	}
	word := func(i int) uint32 { return binary.NativeEndian.Uint32(r.data[4*i:]) }
	q := &event.Request{
		Process: r.process, Thread: r.Thread, Start: int64(r.Start), Protocol: "bpf", Name: asks.name,
		Object: asks.object, Verb: asks.verb, Error: errno(r.Ret), NetNS: namespace(r.NetnsCookie, r.NetnsInum),
		Interface: event.Interface{Index: r.Port, Name: comm(r.Comm[:])},
		Program:   comm(r.data[attrMax : attrMax+programName]),
	}
	rest := r.data[attrMax+programName:]
	switch r.Args[0] {
	case unix.BPF_PROG_LOAD:
		q.Type, q.Program = kernelWord(ebpf.ProgramType(word(0)).String()), comm(r.data[48:attrMax])
	case unix.BPF_MAP_CREATE:
		q.Type, q.Program = kernelWord(ebpf.MapType(word(0)).String()), comm(r.data[28:28+programName])
	case unix.BPF_PROG_ATTACH, unix.BPF_PROG_DETACH, unix.BPF_LINK_CREATE:
		if q.Type = kernelWord(ebpf.AttachType(word(2)).String()); word(2) == 0 {
			q.Type = "cgroup_inet_ingress" // unnamed in the module
		}
		fallthrough
	default:
		q.Path = text.Clean(unix.ByteSliceToString(rest), text.Bound)
		if asks.object == event.ObjectAttachment && len(rest) > 0 { // a cgroup's path
			q.Path = pathOf(rest)
		}
	}
	return one(r, q), true
}

// kernelWord turns the library's LRUHash into the kernel's lru_hash.
func kernelWord(name string) string {
	var b strings.Builder
	letters := []rune(name)
	for i, r := range letters {
		begins := i > 0 && unicode.IsUpper(r) && (!unicode.IsUpper(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1]))
		if begins {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return strings.NewReplacer("c_group", "cgroup", "per_cpu", "percpu").Replace(b.String())
}
