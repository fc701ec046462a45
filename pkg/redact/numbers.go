package redact

import (
	"strconv"
	"strings"
)

// spelt is what one way of reading numbers gives, and where in the text each byte stands.
type spelt struct {
	bytes    []byte
	from, to []int
}

func (s *spelt) add(ch byte, from, to int) {
	if isUpper(ch) {
		ch |= 0x20
	}
	s.bytes, s.from, s.to = append(s.bytes, ch), append(s.from, from), append(s.to, to)
}

// every takes each other byte, from the first or the second on: the rest may be their places.
func (s *spelt) every(first int) *spelt {
	var half spelt
	for i := first; i < len(s.bytes); i += 2 {
		half.add(s.bytes[i], s.from[i], s.to[i])
	}
	return &half
}

// counted marks what spells by the numbers of bytes, or letter by letter, what the call was
// told, whatever stands between: "88.113.55.67", "x58 x71", "58h, 71h", "\u0058", "0:88 1:113".
func (c *Call) counted(message string, marks []mark) {
	if len(message) < window || len(c.values) == 0 {
		return
	}
	var decimal, hexadecimal, octal, single spelt
	for from := 0; from < len(message); from++ {
		to := from
		for to < len(message) && (isLetter(message[to]) || isDigit(message[to])) {
			to++
		}
		if to == from {
			continue
		}
		word := message[from:to]
		if len(word) == 1 {
			single.add(word[0], from, to)
		}
		digits := strings.Trim(word, letters)
		if n, err := strconv.ParseUint(digits, 10, 8); err == nil {
			decimal.add(byte(n), from, to)
		}
		if n, err := strconv.ParseUint(digits, 8, 8); err == nil {
			octal.add(byte(n), from, to)
		}
		if n, err := strconv.ParseUint(strings.TrimRight(lower(word)[strings.LastIndexAny(word, "xXuU")+1:], "h"), 16, 8); err == nil {
			hexadecimal.add(byte(n), from, to)
		}
		from = to
	}
	for _, s := range [...]*spelt{&decimal, decimal.every(0), decimal.every(1), &hexadecimal, hexadecimal.every(0), hexadecimal.every(1), &octal, &single} {
		c.plain.mark(s, marks)
	}
}

// mark marks where a text has windows.
func (n needles) mark(s *spelt, marks []mark) {
	end := window - 1
	for w := range windows(string(s.bytes)) {
		if _, is := n[w]; is {
			for i := s.from[end-window+1]; i < s.to[end]; i++ {
				marks[i] = drop
			}
		}
		end++
	}
}

// spots marks, quickly, what repeats what the call was told as it is, or with other marks
// between letters and digits. It is asked for each argument list and path of a plugin's commands.
func (c *Call) spots(s string) []mark {
	marks := make([]mark, len(s))
	if len(c.values) == 0 {
		return marks
	}
	var plain, folded uint64 // the last window
	var places [window]int   // where the bytes of folded stand
	for i, letters := 0, 0; i < len(s); i++ {
		ch := s[i]
		if isUpper(ch) {
			ch |= 0x20
		}
		plain = plain<<8 | uint64(ch)
		if _, is := c.plain[plain]; is && i >= window-1 {
			dropAll(marks[i-window+1 : i+1])
		}
		if !isLetter(ch) && !isDigit(ch) && ch < 0x80 {
			continue
		}
		folded = folded<<8 | uint64(ch)
		places[letters%window] = i
		letters++
		if _, is := c.folded[folded]; is && letters >= window {
			dropAll(marks[places[letters%window] : i+1])
		}
	}
	return marks
}

func dropAll(marks []mark) {
	for i := range marks {
		marks[i] = drop
	}
}
