//go:build !linux

package install

import (
	"errors"
	"io/fs"
	"os"
)

func ownerOf(fs.FileInfo) (uid, gid int) { return 0, 0 }

func attributesOf(string) (map[string][]byte, error) { return nil, nil }

func setAttributes(*os.File, map[string][]byte) error { return nil }

// lockTree fails: nothing is installed on this platform.
func lockTree(string, bool) (release func(), err error) {
	return nil, errors.New("cniscope is installed on Linux only")
}

func syncFolder(string) error { return nil }

func isNotEmpty(error) bool { return false }
