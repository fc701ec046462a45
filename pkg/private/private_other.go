//go:build !linux && !windows

package private

import "os"

// Dir makes and opens a folder. On this platform nothing is observed, and nothing checked.
func Dir(dir string) (*os.Root, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return os.OpenRoot(dir)
}
