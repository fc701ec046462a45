package main

// asking is nil: instructions of programs are counted on the other architecture.
func asking() []byte { return nil }
