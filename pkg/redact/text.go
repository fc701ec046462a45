package redact

import "strings"

// cut says what becomes of a byte.
type cut uint8

const (
	stays cut = iota
	goes
)

// text is a message that is being redacted.
type text struct {
	call *Call
	s    string
	cut  []cut
	// instead is what stands where a stretch was, by its first byte, if it is no placeholder.
	instead map[int]string
}

// quotes are what texts put around foreign pieces; together with blanks and brackets they
// part chunks, which are judged one by one.
const (
	quotes   = "\"'`"
	brackets = "()[]{}<>,;|"
	trimmed  = ".:=!?-*&#/\\%@~+$" // at the ends of a chunk
)

// separates is how many bytes at i part chunks; 0 if none do. A backslash does where it
// stands for a quote or a blank, once or more often.
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

// chunks judges one after another.
func (t *text) chunks() {
	run, runs, last := 0, 0, 0 // of numbers: where it begins, how many; where the last word ended
	for i := 0; i < len(t.s); {
		if n := separates(t.s, i); n > 0 {
			i += n
			continue
		}
		j := i
		for j < len(t.s) && separates(t.s, j) == 0 {
			j++
		}
		// Numbers in a row are how Go prints bytes: "[123 34 98 105 …]".
		if isNumber(t.s[i:j]) {
			if runs++; runs == 1 {
				run = i
			}
			if runs >= maxRun {
				t.remove(run, j)
			}
		} else {
			runs = 0
		}
		if strings.Trim(t.s[i:j], trimmed) != "" {
			if names(t.s[:last]) && assigns(t.s[last:i]) {
				t.remove(i, j)
			}
			last = i + len(strings.TrimRight(t.s[i:j], trimmed))
		}
		t.chunk(i, j)
		i = j
	}
}

// maxRun is how many numbers in a row are one too many.
const maxRun = 4

func isNumber(s string) bool {
	s = strings.Trim(s, trimmed)
	hex, is := strings.CutPrefix(s, "0x")
	return s != "" && (strings.Trim(s, "0123456789") == "" || is && len(hex) <= 2)
}

// secretive are the words behind which a secret stands.
var secretive = [...]string{"password", "passwd", "passphrase", "pwd", "pass", "secret", "token", "apikey", "key", "credential", "credentials", "authorization", "auth", "bearer", "psk", "cookie"}

// names tells whether a text ends with what a secret is called.
func names(s string) bool {
	s = lower(s[max(0, len(s)-len("authorization")):])
	for _, word := range secretive {
		if strings.HasSuffix(s, word) {
			return true
		}
	}
	return false
}

// assigns tells whether what stands between two chunks gives the second to the first, as in
// JSON and in key=value. A colon and a blank alone are a sentence: "no token: unexpected EOF".
func assigns(between string) bool {
	blank := strings.ContainsAny(between, " \t\n")
	quoted := strings.ContainsAny(between, quotes)
	return strings.Trim(between, quotes+"\\:= ") == "" && quoted && (!blank || strings.ContainsAny(between, ":="))
}

// chunk judges what stands between two separators.
func (t *text) chunk(from, to int) {
	begin, end := from, to
	for from < to && strings.IndexByte(trimmed, t.s[from]) >= 0 && !isAddress(t.s[from:to]) {
		from++
	}
	for from < to && strings.IndexByte(trimmed, t.s[to-1]) >= 0 && !isAddress(t.s[from:to]) {
		to--
	}
	// Of marks in a row nobody learns anything but a secret.
	if from-begin > maxMarks {
		t.remove(begin, from)
	}
	if end-to > maxMarks {
		t.remove(to, end)
	}
	if from < to {
		t.part(from, to)
	}
}

// maxMarks is how many marks in a row stay: "...".
const maxMarks = 3

// part judges a part of a chunk, and if it cannot stay, the parts of that.
func (t *text) part(from, to int) {
	s := t.s[from:to]
	if t.stays(from, to) {
		return
	}
	if i := strings.IndexByte(s, '?'); i >= 0 { // of a query nothing stays
		t.remove(from+i+1, to)
		t.part(from, from+i)
		return
	}
	if i := strings.Index(s, "://"); i >= 0 {
		t.url(from, from+i, to)
		return
	}
	if s[0] == '/' || t.told() && from > 0 && t.s[from-1] == '/' {
		t.path(from, to)
		return
	}
	if i := strings.IndexAny(s, "=:"); i >= minKey && i < len(s)-1 && isLetter(s[0]) && t.stays(from, from+i) {
		if rest := from + i + 1; names(s[:i]) {
			t.remove(rest, to)
		} else {
			t.chunk(rest, to)
		}
		return
	}
	if with, ok := rounded(s); ok && t.told() && !t.marked(from, to) && !t.call.Repeats(with) {
		t.remove(from, to)
		t.replace(from, with)
		return
	}
	t.remove(from, to)
}

// path judges each part of a path by itself.
func (t *text) path(from, to int) {
	for from < to {
		end := from + strings.IndexByte(t.s[from:to], '/')
		if end < from {
			end = to
		}
		if end > from && !t.stays(from, end) {
			t.remove(from, end)
		}
		from = end + 1
	}
}

// minKey is the shortest key: of "c2:b0:57" none is one.
const minKey = 3

// url judges scheme, host and path by themselves. Its user never stays.
func (t *text) url(from, scheme, to int) {
	t.part(from, scheme)
	from = scheme + len("://")
	// What is in front of the last @ is the user's; a slash may be in there.
	if i := strings.LastIndexByte(t.s[from:to], '@'); i >= 0 {
		t.remove(from, from+i)
		from += i + 1
	}
	host := to
	if i := strings.IndexByte(t.s[from:to], '/'); i >= 0 {
		host = from + i
		t.part(host, to)
	}
	if from < host {
		t.part(from, host)
	}
}

// stays tells whether a stretch may stay as it is.
func (t *text) stays(from, to int) bool {
	return !t.marked(from, to) && t.call.form(t.s[from:to], t.told())
}

func (t *text) told() bool { return t.call.whole() }

func (t *text) marked(from, to int) bool {
	for _, c := range t.cut[from:to] {
		if c == goes {
			return true
		}
	}
	return false
}

func (t *text) remove(from, to int) {
	for i := from; i < to; i++ {
		t.cut[i] = goes
	}
}

func (t *text) replace(at int, with string) {
	if t.instead == nil {
		t.instead = map[int]string{}
	}
	t.instead[at] = with
}

// String puts placeholders where something went.
func (t *text) String() string {
	var b strings.Builder
	for i := 0; i < len(t.s); {
		j := i
		for j < len(t.s) && t.cut[j] == t.cut[i] {
			j++
		}
		with, replaced := t.instead[i]
		switch {
		case t.cut[i] == stays:
			b.WriteString(t.s[i:j])
		case replaced:
			b.WriteString(with)
		default:
			b.WriteString(placeholder(t.s[i:j]))
		}
		i = j
	}
	return b.String()
}
