//go:build !unix

package main

import (
	"errors"
	"io"
)

func systemLog() (io.Writer, error) { return nil, errors.New("no system log on this platform") }
