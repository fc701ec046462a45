package main

import "golang.org/x/sys/unix"

const (
	sysFstatat = unix.SYS_FSTATAT
	machineELF = 183 // EM_AARCH64
	exits      = "\xa8\x0b\x80\xd2\x00\x00\x80\xd2\x01\x00\x00\xd4"
)
