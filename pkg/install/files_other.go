//go:build !linux

package install

import (
	"errors"
	"io/fs"
	"os"
)

func ownerOf(fs.FileInfo) owner { return owner{} }

func attributesOf(string) (map[string][]byte, error) { return nil, nil }

func setAttributes(*os.File, map[string][]byte) error { return nil }

// lock fails: nothing is installed on this platform.
func (t tree) lock() (release func(), err error) {
	return nil, errors.New("cniscope is installed on Linux only")
}

func syncFolder(string) error { return nil }

func isNotEmpty(error) bool { return false }
