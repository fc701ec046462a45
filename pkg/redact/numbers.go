package redact

import (
	"encoding/binary"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

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

type number struct {
	n        uint64
	from, to int
}

type reading struct {
	marks  string
	read   func(word string) (n uint64, is bool)
	widths []int           // bytes per number
	units  []time.Duration // units that a number may count
}

func readings() []reading {
	one := []time.Duration{1}
	return []reading{
		{"", decimal, []int{1, 2}, one},
		{"", octal, []int{1}, one},
		{"", hexadecimal, []int{1, 2}, one},
		{".", duration, []int{1, 2, 3, 4}, []time.Duration{time.Second, time.Millisecond, time.Microsecond, 1}},
		{"-:+", instant, []int{4}, one},
		{":", interfaceID, []int{2, 4, 6}, one},
	}
}

func decimal(word string) (uint64, bool) {
	word = strings.Trim(word, letters)
	if word == "" {
		return 0, false
	}
	n, err := strconv.ParseUint(word, 10, 16)
	return n, err == nil
}

func octal(word string) (uint64, bool) {
	n, err := strconv.ParseUint(strings.Trim(word, letters), 8, 8)
	return n, err == nil
}

func hexadecimal(word string) (uint64, bool) {
	n, err := strconv.ParseUint(strings.TrimRight(lower(word)[strings.LastIndexAny(word, "xXuU")+1:], "h"), 16, 16)
	return n, err == nil
}

// duration reads "547ms", "1m5.535s" and "18.547" (seconds).
func duration(word string) (uint64, bool) {
	word = strings.TrimLeft(word, letters)
	d, err := time.ParseDuration(word)
	if err != nil {
		d, err = time.ParseDuration(strings.TrimRight(word, letters) + "s")
	}
	return uint64(d), err == nil && d >= 0 //nolint:gosec // not negative
}

func instant(word string) (uint64, bool) {
	t, is := timeOf(word)
	return uint64(t.Unix()), is //nolint:gosec // not negative
}

// interfaceID reads an IPv6 address's last six bytes, which are arbitrary in a link-local address.
func interfaceID(word string) (uint64, bool) {
	a, err := netip.ParseAddr(word)
	b := a.As16()
	return binary.BigEndian.Uint64(b[8:]) & (1<<48 - 1), err == nil && a.Is6()
}

func (r reading) numbers(text string) (all []number) {
	part := func(ch byte) bool { return isLetter(ch) || isDigit(ch) || strings.IndexByte(r.marks, ch) >= 0 }
	for from := 0; from < len(text); from++ {
		to := from
		for to < len(text) && part(text[to]) {
			to++
		}
		if word := strings.Trim(text[from:to], trimmed); word != "" {
			if n, is := r.read(word); is {
				all = append(all, number{n, from, to})
			}
		}
		from = max(from, to)
	}
	return all
}

// counted marks numbers and letters that spell a value, with any separators: "88.113.55.67", "x58 x71", "\u0058", "port
// 22641", "22.641s".
func (c *Call) counted(message string, marks []mark) {
	if len(message) < window || len(c.values) == 0 {
		return
	}
	for _, r := range readings() {
		all := r.numbers(message)
		if len(all)*slices.Max(r.widths) < window {
			continue
		}
		for _, some := range [...][]number{all, other(all, 0), other(all, 1), varying(all)} {
			for _, unit := range r.units {
				for _, width := range r.widths {
					if len(some)*width < window {
						continue
					}
					c.index.plain.mark(written(some, unit, width, binary.BigEndian), marks)
					if width > 1 {
						c.index.plain.mark(written(some, unit, width, binary.LittleEndian), marks)
					}
				}
			}
		}
	}
	var single spelt
	for i := range len(message) {
		alone := (i == 0 || !isWord(message[i-1])) && (i == len(message)-1 || !isWord(message[i+1]))
		if alone && isWord(message[i]) {
			single.add(message[i], i, i+1)
		}
	}
	c.index.plain.mark(&single, marks)
}

func isWord(ch byte) bool { return isLetter(ch) || isDigit(ch) }

// other returns every second number: the rest may be positions.
func other(all []number, first int) (some []number) {
	for i := first; i < len(all); i += 2 {
		some = append(some, all[i])
	}
	return some
}

// varying leaves out recurring numbers, the filling of "10.88.113.55/24 10.67.97.110/24 …".
func varying(all []number) (some []number) {
	times := map[uint64]int{}
	for _, number := range all {
		times[number.n]++
	}
	for _, number := range all {
		if times[number.n] < fillingLeast {
			some = append(some, number)
		}
	}
	return some
}

// fillingLeast is how often filling occurs: eight bytes need three addresses with one or two numbers of filling.
const fillingLeast = 3

func written(all []number, unit time.Duration, width int, order binary.ByteOrder) *spelt {
	var s spelt
	for _, number := range all {
		n := number.n / uint64(unit) //nolint:gosec // not negative
		if n > math.MaxUint64>>(64-8*width) {
			continue
		}
		var b [8]byte
		order.PutUint64(b[:], n)
		bytes := b[8-width:]
		if order == binary.ByteOrder(binary.LittleEndian) {
			bytes = b[:width]
		}
		for _, ch := range bytes {
			s.add(ch, number.from, number.to)
		}
	}
	return &s
}

func (n *needles) mark(s *spelt, marks []mark) {
	end := window - 1
	for w := range windows(string(s.bytes)) {
		if n.has(w) {
			dropAll(marks[s.from[end-window+1]:s.to[end]])
		}
		end++
	}
}

func dropAll(marks []mark) {
	for i := range marks {
		marks[i] = drop
	}
}
