package main

import (
	"cmp"
	"io"
	"os"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/term"
)

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// width is how many columns w has; 120 if it is no terminal.
func width(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
			return columns
		}
	}
	if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && columns > 0 {
		return columns
	}
	return 120
}

// asciiLocale reports whether the environment names a locale that is not UTF-8, as LANG=C does. Where none
// is named, as in a service or a container, UTF-8 is what all read.
func asciiLocale(getenv func(string) string) bool {
	locale := strings.ToLower(cmp.Or(getenv("LC_ALL"), getenv("LC_CTYPE"), getenv("LANG")))
	return locale != "" && !strings.Contains(locale, "utf-8") && !strings.Contains(locale, "utf8")
}

// busy tells the probe whether operations are open. One goroutine sets it, another asks.
type busy struct{ open atomic.Int64 }

func (b *busy) set(open int) { b.open.Store(int64(open)) }
func (b *busy) is() bool     { return b.open.Load() > 0 }
