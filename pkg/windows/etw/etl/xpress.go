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
	length, next, ok = int(in[at]&7), at+2, true
	take := func(n int) []byte {
		if ok = ok && len(in)-next >= n; !ok {
			return make([]byte, n)
		}
		next += n
		return in[next-n : next]
	}
	if length < 7 {
		return length + 3, next, true
	}
	if *half < 0 {
		*half = next
		length = int(take(1)[0] & 15)
	} else {
		length, *half = int(in[*half]>>4), -1
	}
	if length < 15 {
		return length + 7 + 3, next, ok
	}
	if length = int(take(1)[0]); length < 255 {
		return length + 15 + 7 + 3, next, ok
	}
	if length = int(binary.LittleEndian.Uint16(take(2))); length == 0 {
		length = int(binary.LittleEndian.Uint32(take(4)))
	}
	return length + 3, next, ok && length >= 15+7
}
