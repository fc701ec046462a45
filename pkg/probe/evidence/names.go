package evidence

import (
	"net/netip"
	"path"
	"strings"
	"unicode"
)

// tail is how a namespace's file is known by whatever way it is reached: by its last names
// that somebody drew ("cni-786877ce-…"), else by all of its path ("/proc/77/ns/net").
func tail(file string) string {
	if file = path.Clean(file); !path.IsAbs(file) || file == "/" {
		return ""
	}
	for i := len(file) - 1; i >= 0; i-- {
		if file[i] == '/' && drawn(file[i+1:]) {
			return file[i+1:]
		}
	}
	return file
}

// drawn reports whether a name was drawn or computed and not chosen: it holds six hexadecimal
// digits in a row, and they are no word.
func drawn(name string) bool {
	run, digit := 0, false
	for _, r := range name {
		switch {
		case r >= '0' && r <= '9':
			run, digit = run+1, true
		case r >= 'a' && r <= 'f':
			run++
		default:
			run, digit = 0, false
		}
		if run >= hashPrefix && digit {
			return true
		}
	}
	return false
}

// endsInHash reports whether what follows a name's last hyphen may be a hash. drawn takes one in 360
// for a word, since it has no digit among its first six; here that does no harm, for whoever asks
// compares it with the hashes that there are.
func endsInHash(name string) bool {
	end := name[strings.LastIndexByte(name, '-')+1:]
	return len(end) >= hashPrefix && len(end) < len(name) && strings.Trim(end, "0123456789abcdef") == ""
}

// holds reports whether a text holds a name, and not only as a part of a longer one. In front
// of a path may be another.
func holds(text, name string) bool {
	for at := 0; name != ""; at++ {
		i := strings.Index(text[at:], name)
		if i < 0 {
			return false
		}
		at += i
		before, after := text[:at], text[at+len(name):]
		if (name[0] == '/' || before == "" || !within(before[len(before)-1])) && (after == "" || !within(after[0])) {
			return true
		}
	}
	return false
}

// within reports whether a byte may be one of a longer name.
func within(b byte) bool {
	return b == '-' || b == '_' || b == '.' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= 0x80
}

// separates words from one another; what names hold does not.
func separates(r rune) bool {
	return !strings.ContainsRune("-._:", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
}

// parseAddress reads an address with or without its prefix; false for those that everybody
// has.
func parseAddress(s string) (netip.Addr, bool) {
	s, _, _ = strings.Cut(s, "/")
	a, err := netip.ParseAddr(s)
	return a.WithZone("").Unmap(), err == nil && a.IsGlobalUnicast()
}
