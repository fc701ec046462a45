// Package private makes and checks folders in which nobody but us, and root, can put or
// replace anything: where locks, spools and sockets lie.
//
// A folder is as private as the way to it. Whoever may write to a folder above it, or owns a
// link on the way, chooses where the path leads.
package private

import "fmt"

// Error says what is wrong with a folder, or with one on the way to it.
type Error struct {
	// Path is the folder, or what is wrong on the way to it.
	Path string
	// What is wrong, and Remedy what to do about it.
	What, Remedy string
}

func (e *Error) Error() string { return fmt.Sprintf("%s %s: %s", e.Path, e.What, e.Remedy) }
