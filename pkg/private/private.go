// Package private creates and checks directories that only this user and root can write. It checks the whole path,
// since owners of parents and links decide where it leads.
package private

import "fmt"

// Error describes an unsafe directory.
type Error struct {
	Path         string
	What, Remedy string
}

func (e *Error) Error() string { return fmt.Sprintf("%s %s: %s", e.Path, e.What, e.Remedy) }
