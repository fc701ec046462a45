//go:build linux

package main

import "golang.org/x/sys/unix"

const (
	sysFstatat = unix.SYS_NEWFSTATAT
	machineELF = 62 // EM_X86_64
	exits      = "\xb8\x3c\x00\x00\x00\x31\xff\x0f\x05"
)
