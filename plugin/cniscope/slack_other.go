//go:build !linux

package main

// setSlack does nothing: only Linux has a slack for each thread.
func setSlack([]string) {}
