//go:build !linux && !windows

package disk

import "os"

const nonblock = 0

func unsupported(error) bool { return false }

func attributes(string) (map[string][]byte, error) { return nil, nil }

func setAttribute(*os.File, string, []byte) error { return nil }
