package main

// asking is nil: BPF instructions are counted on the other architecture.
func asking() []byte { return nil }
