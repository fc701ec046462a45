// Package private creates and checks directories in which only this user and root can add or replace files: for
// locks, spools and sockets.
//
// It also checks the path: an account that can write to a parent directory, or owns a link on the way, chooses where
// the path leads.
package private

import "fmt"

// Error describes an unsafe directory, or an unsafe part of its path.
type Error struct {
	// Path is the directory, or the unsafe part of its path.
	Path string
	// What is the cause, and Remedy the fix.
	What, Remedy string
}

func (e *Error) Error() string { return fmt.Sprintf("%s %s: %s", e.Path, e.What, e.Remedy) }
