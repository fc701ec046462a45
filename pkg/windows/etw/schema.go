package etw

import "bytes"

// ContainerD is containerd's log.
var ContainerD = guid(0x2acb92c0, 0xeb9b, 0x571a, 0x69cf, 0x8f3410f383ad)

// Types of fields (TraceLoggingProvider.h).
const (
	fieldWide   = 1
	fieldANSI   = 2
	fieldChain  = 0x80
	fieldsOther = 0x60
)

var fieldSizes = [22]int{3: 1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 4, 15: 16, 17: 8, 18: 16, 20: 4, 8}

// Texts returns the text fields before the first unknown one.
func (r *Record) Texts() map[string]string {
	all := map[string]string{}
	s := &payload{b: r.Schema}
	s.take(2)
	s.tags()
	s.ansi()
	from := &payload{b: r.Payload, pointer: r.Pointer}
	for len(s.b) > 0 && !s.short && !from.short {
		name, kind := s.ansi(), s.u8()
		if kind&fieldChain != 0 && s.u8()&fieldChain != 0 {
			s.tags()
		}
		switch kind &^= fieldChain; {
		case s.short:
		case kind&fieldsOther != 0:
			return all
		case kind == fieldWide:
			all[name] = from.wide()
		case kind == fieldANSI:
			text, rest, ended := bytes.Cut(from.b, []byte{0})
			from.b, from.short = rest, !ended
			all[name] = string(text)
		case int(kind) < len(fieldSizes) && fieldSizes[kind] > 0:
			from.take(fieldSizes[kind])
		default:
			return all
		}
	}
	return all
}

func (p *payload) tags() {
	for p.u8()&fieldChain != 0 {
	}
}

func (p *payload) u8() byte {
	if b := p.take(1); b != nil {
		return b[0]
	}
	return 0
}
