package etl

import (
	"encoding/binary"
	"errors"
)

var errCompression = errors.New("its compression is broken")

// expand decompresses plain LZ77 ([MS-XCA] 2.4), reusing into. More than limit bytes are an error.
func expand(into, in []byte, limit int) ([]byte, error) {
	out := into[:0]
	half := -1 // of a free length nibble
	for at := 0; at+4 <= len(in); {
		flags := binary.LittleEndian.Uint32(in[at:])
		at += 4
		for bit := 31; bit >= 0 && at < len(in); bit-- {
			if flags>>bit&1 == 0 {
				if len(out) >= limit {
					return nil, errCompression
				}
				out = append(out, in[at])
				at++
				continue
			}
			if len(in)-at < 2 {
				return out, nil // the remaining flags are ones
			}
			length, next, ok := matchLength(in, at, &half)
			distance := int(binary.LittleEndian.Uint16(in[at:])>>3) + 1
			if !ok || distance > len(out) || length > limit-len(out) {
				return nil, errCompression
			}
			at = next
			for range length {
				out = append(out, out[len(out)-distance])
			}
		}
	}
	return out, nil
}

func matchLength(in []byte, at int, half *int) (length, next int, ok bool) {
	length = int(in[at] & 7)
	next = at + 2
	need := func(n int) bool { return len(in)-next >= n }
	if length < 7 {
		return length + 3, next, true
	}
	if *half < 0 {
		if !need(1) {
			return 0, 0, false
		}
		*half, length = next, int(in[next]&15)
		next++
	} else {
		length, *half = int(in[*half]>>4), -1
	}
	if length < 15 {
		return length + 7 + 3, next, true
	}
	if !need(1) {
		return 0, 0, false
	}
	length = int(in[next])
	next++
	if length < 255 {
		return length + 15 + 7 + 3, next, true
	}
	if !need(2) {
		return 0, 0, false
	}
	length = int(binary.LittleEndian.Uint16(in[next:]))
	next += 2
	if length == 0 {
		if !need(4) {
			return 0, 0, false
		}
		length = int(binary.LittleEndian.Uint32(in[next:]))
		next += 4
	}
	return length + 3, next, length >= 15+7
}
