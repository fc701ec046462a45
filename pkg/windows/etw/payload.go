package etw

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// payload is read sequentially. Beyond its end short is set and values are zero.
type payload struct {
	b       []byte
	pointer int
	short   bool
}

func (p *payload) take(n int) []byte {
	if p.short || n > len(p.b) {
		p.short = true
		return nil
	}
	taken := p.b[:n]
	p.b = p.b[n:]
	return taken
}

func (p *payload) u32() uint32 {
	if b := p.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (p *payload) u64() uint64 {
	if b := p.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (p *payload) address() uint64 {
	if p.pointer == 4 {
		return uint64(p.u32())
	}
	return p.u64()
}

// ansi reads a text of an unknown code page; non-ASCII characters become U+FFFD.
func (p *payload) ansi() string {
	end := bytes.IndexByte(p.b, 0)
	if end < 0 || p.short {
		p.short = true
		return ""
	}
	text := p.take(end + 1)[:end]
	return strings.Map(func(r rune) rune {
		if r >= utf8.RuneSelf {
			return utf8.RuneError
		}
		return r
	}, string(text))
}

func (p *payload) wide() string {
	if p.short {
		return ""
	}
	var units []uint16
	for i := 0; i+2 <= len(p.b); i += 2 {
		unit := binary.LittleEndian.Uint16(p.b[i:])
		if unit == 0 {
			p.take(i + 2)
			return string(utf16.Decode(units))
		}
		units = append(units, unit)
	}
	p.short = true
	return ""
}

// subAuthorities is SID_MAX_SUB_AUTHORITIES of winnt.h.
const subAuthorities = 15

// sid reads a SID: revision, number of subauthorities, authority in six bytes big endian, subauthorities.
func (p *payload) sid() string {
	head := p.take(8)
	if head == nil {
		return ""
	}
	if head[1] > subAuthorities {
		p.short = true
		return ""
	}
	authority := uint64(0)
	for _, b := range head[2:8] {
		authority = authority<<8 | uint64(b)
	}
	text := "S-" + strconv.Itoa(int(head[0])) + "-" + strconv.FormatUint(authority, 10)
	for range head[1] {
		text += "-" + strconv.FormatUint(uint64(p.u32()), 10)
	}
	if p.short {
		return ""
	}
	return text
}

// user reads a TOKEN_USER followed by its SID; a zero means none.
func (p *payload) user() string {
	if len(p.b) >= 4 && binary.LittleEndian.Uint32(p.b) == 0 {
		p.take(4)
		return ""
	}
	p.address()
	p.address()
	return p.sid()
}
