package redact

import (
	"slices"
	"strings"
)

type mark uint8

const (
	keep mark = iota
	drop
)

type message struct {
	call  *Call
	s     string
	marks []mark // by byte
	// Replacements, by a range's first byte; the default is a placeholder.
	instead map[int]string
	numbers []string // distinct words with numbers that stay
}

const (
	quotes   = "\"'`"
	brackets = "()[]{}<>,;|"
	trimmed  = ".:=!?-*&#/\\%@~+$" // removed from the ends of a chunk
)

// separates returns the length of the separator at i, or 0. A backslash counts if it escapes a quote or a blank.
func separates(s string, i int) int {
	switch ch := s[i]; {
	case ch <= ' ', strings.IndexByte(quotes+brackets, ch) >= 0:
		return 1
	case ch == '\\':
		j := i
		for j < len(s) && s[j] == '\\' {
			j++
		}
		if j < len(s) && (strings.IndexByte(quotes, s[j]) >= 0 || s[j] == 'n' || s[j] == 't') {
			return j + 1 - i
		}
	}
	return 0
}

func (m *message) chunks() {
	var run, runs, last int // of consecutive numbers: start, count, end of the last word
	for i := 0; i < len(m.s); {
		if n := separates(m.s, i); n > 0 {
			i += n
			continue
		}
		j := i
		for j < len(m.s) && separates(m.s, j) == 0 {
			j++
		}
		// Go prints bytes as numbers: "[123 34 98 105 …]".
		if isNumber(m.s[i:j]) {
			if runs++; runs == 1 {
				run = i
			}
			if runs >= maxRun {
				m.remove(run, j)
			}
		} else {
			runs = 0
		}
		if strings.Trim(m.s[i:j], trimmed) != "" {
			if namesSecret(m.s[:last]) && assigns(m.s[last:i]) {
				m.remove(i, j)
			}
			last = i + len(strings.TrimRight(m.s[i:j], trimmed))
		}
		m.chunk(i, j)
		i = j
	}
}

// maxRun consecutive numbers are dropped.
const maxRun = 4

func isNumber(s string) bool {
	s = strings.Trim(s, trimmed)
	hex, is := strings.CutPrefix(s, "0x")
	return s != "" && (strings.Trim(s, "0123456789") == "" || is && len(hex) <= 2)
}

var secretive = [...]string{
	"password", "passwd", "passphrase", "pwd", "pass", "secret", "token", "apikey", "key", "credential", "credentials",
	"authorization", "auth", "bearer", "psk", "cookie",
}

func namesSecret(s string) bool {
	s = lower(s[max(0, len(s)-len("authorization")):])
	for _, word := range secretive {
		if strings.HasSuffix(s, word) {
			return true
		}
	}
	return false
}

// assigns reports whether the second chunk is the first's value, as in JSON and key=value. A colon with a blank alone
// is prose: "no token: unexpected EOF".
func assigns(between string) bool {
	blank := strings.ContainsAny(between, " \t\n")
	quoted := strings.ContainsAny(between, quotes)
	return strings.Trim(between, quotes+"\\:= ") == "" && quoted && (!blank || strings.ContainsAny(between, ":="))
}

func (m *message) chunk(from, to int) {
	begin, end := from, to
	for from < to && strings.IndexByte(trimmed, m.s[from]) >= 0 && !isAddress(m.s[from:to]) {
		from++
	}
	for from < to && strings.IndexByte(trimmed, m.s[to-1]) >= 0 && !isAddress(m.s[from:to]) {
		to--
	}
	// Long punctuation may be a secret.
	if from-begin > maxMarks {
		m.remove(begin, from)
	}
	if end-to > maxMarks {
		m.remove(to, end)
	}
	if from < to {
		m.part(from, to)
	}
}

const maxMarks = 3

func (m *message) part(from, to int) {
	s := m.s[from:to]
	if m.mayStay(from, to) {
		return
	}
	if i := strings.IndexByte(s, '?'); i >= 0 { // a query
		m.remove(from+i+1, to)
		m.part(from, from+i)
		return
	}
	if i := strings.Index(s, "://"); i >= 0 {
		m.url(from, from+i, to)
		return
	}
	if s[0] == '/' || (!m.call.lost || strings.HasPrefix(s, "proc/sys/")) && from > 0 && m.s[from-1] == '/' {
		m.path(from, to)
		return
	}
	if i := strings.IndexAny(s, "=:"); i >= minKey && i < len(s)-1 && isLetter(s[0]) && m.mayStay(from, from+i) {
		if rest := from + i + 1; namesSecret(s[:i]) {
			m.remove(rest, to)
		} else {
			m.chunk(rest, to)
		}
		return
	}
	if with, ok := rounded(s); ok && m.call.whole() && !m.dropped(from, to) && !m.call.Repeats(with) && m.room(with) {
		m.instead[from] = with
	}
	m.remove(from, to)
}

func (m *message) path(from, to int) {
	for from < to {
		end := from + strings.IndexByte(m.s[from:to], '/')
		if end < from {
			end = to
		}
		if end > from && !m.mayStay(from, end) {
			m.remove(from, end)
		}
		from = end + 1
	}
}

// minKey is the minimum length of a key: "c2:b0:57" contains none.
const minKey = 3

func (m *message) url(from, scheme, to int) {
	m.part(from, scheme)
	from = scheme + len("://")
	// It ends at the last @ and may contain a slash.
	if i := strings.LastIndexByte(m.s[from:to], '@'); i >= 0 {
		m.remove(from, from+i)
		from += i + 1
	}
	host := to
	if i := strings.IndexByte(m.s[from:to], '/'); i >= 0 {
		host = from + i
		m.part(host, to)
	}
	if from < host {
		m.part(from, host)
	}
}

func (m *message) mayStay(from, to int) bool {
	s := m.s[from:to]
	whole := m.call.whole()
	harmless := m.call.form(s, whole) || whole && isInterface(s) || !whole && !m.call.lost && m.plain(s)
	return harmless && !m.dropped(from, to) && m.room(s)
}

// maxPlain numbers stay while the configuration is unknown.
const maxPlain = 4

// plain reports whether s is a number, a library's version or an interface, which are no secrets.
func (m *message) plain(s string) bool {
	if m.call.isShort(s) {
		return false
	}
	number := len(s) <= maxDigits && strings.Trim(s, "0123456789") == ""
	return number && len(m.numbers) < maxPlain || libc.MatchString(s) || usual.MatchString(s)
}

// maxNumbers bounds a message's numbers: a plugin can spell a computed secret in them.
const maxNumbers = 16

func (m *message) room(s string) bool {
	if countDigits(s) == 0 || m.call.names[s] || slices.Contains(m.numbers, s) {
		return true
	}
	if len(m.numbers) == maxNumbers {
		return false
	}
	m.numbers = append(m.numbers, s)
	return true
}

func (m *message) dropped(from, to int) bool {
	return slices.Contains(m.marks[from:to], drop)
}

func (m *message) remove(from, to int) { dropAll(m.marks[from:to]) }

func (m *message) String() string {
	var b strings.Builder
	for i := 0; i < len(m.s); {
		j := i
		for j < len(m.s) && m.marks[j] == m.marks[i] {
			j++
		}
		with, replaced := m.instead[i]
		switch {
		case m.marks[i] == keep:
			b.WriteString(m.s[i:j])
		case replaced:
			b.WriteString(with)
		default:
			b.WriteString(placeholder(m.s[i:j]))
		}
		i = j
	}
	return b.String()
}
