// Package terminal describes an output's width, colors and letters.
package terminal

import (
	"cmp"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/term"
)

// Is reports whether w is a terminal.
func Is(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Width returns columns; 120, not known, if w is no terminal and COLUMNS names none.
func Width(w io.Writer) (columns int, known bool) {
	if f, ok := w.(*os.File); ok {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
			return columns, true
		}
	}
	if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && columns > 0 {
		return columns, true
	}
	return 120, false
}

// Modes are the values of --color.
func Modes() []string { return []string{"auto", "always", "never"} }

// Colors reports whether to color w, by --color: "always", "never" or "auto".
func Colors(flag string, w io.Writer, getenv func(string) string) bool {
	return flag == "always" || flag == "auto" && Is(w) && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
}

// ASCII reports a locale without UTF-8, such as LANG=C. Services name none.
func ASCII(getenv func(string) string) bool {
	locale := strings.ToLower(cmp.Or(getenv("LC_ALL"), getenv("LC_CTYPE"), getenv("LANG")))
	return locale != "" && !strings.Contains(locale, "utf-8") && !strings.Contains(locale, "utf8")
}
