//go:build !linux

package spool

import "os"

func lock(*os.File) error { return nil }
