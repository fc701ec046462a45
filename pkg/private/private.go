// Package private creates and checks directories to which only this user and root can write: for locks, spools and
// sockets. It checks the whole path, because the owner of a parent directory or link decides where the path leads.
package private

import "fmt"

// Error describes an unsafe directory.
type Error struct {
	// Path is the unsafe part of the path.
	Path         string
	What, Remedy string
}

func (e *Error) Error() string { return fmt.Sprintf("%s %s: %s", e.Path, e.What, e.Remedy) }
