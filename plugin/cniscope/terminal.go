package main

import (
	"io"
	"os"
	"strconv"
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

// busy tells the probe whether operations are open. One goroutine sets it, another asks.
type busy struct{ open atomic.Int64 }

func (b *busy) set(open int) { b.open.Store(int64(open)) }
func (b *busy) is() bool     { return b.open.Load() > 0 }
