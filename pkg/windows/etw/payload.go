package etw

import (
	"bytes"
	"encoding/binary"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// payload is read sequentially. Beyond its end, short is set and values are zero.
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

// ansi replaces non-ASCII characters by U+FFFD, because the code page is unknown.
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
	text, rest, ended := UTF16(p.b)
	if p.short = p.short || !ended; p.short {
		return ""
	}
	p.b = rest
	return text
}

// UTF16 reads a little-endian text up to its NUL or the end, and returns the bytes behind the NUL.
func UTF16(b []byte) (text string, rest []byte, ended bool) {
	var units []uint16
	for ; len(b) >= 2 && !ended; b = b[2:] {
		unit := binary.LittleEndian.Uint16(b)
		if ended = unit == 0; !ended {
			units = append(units, unit)
		}
	}
	return string(utf16.Decode(units)), b, ended
}

// subAuthorities is SID_MAX_SUB_AUTHORITIES of winnt.h.
const subAuthorities = 15

// sid skips a SID: revision, number of subauthorities, six bytes of authority, subauthorities of four.
func (p *payload) sid() {
	if head := p.take(8); head != nil && head[1] <= subAuthorities {
		p.take(4 * int(head[1]))
		return
	}
	p.short = true
}

// user skips a TOKEN_USER and its SID; a zero means none.
func (p *payload) user() {
	if len(p.b) >= 4 && binary.LittleEndian.Uint32(p.b) == 0 {
		p.take(4)
		return
	}
	p.address()
	p.address()
	p.sid()
}
