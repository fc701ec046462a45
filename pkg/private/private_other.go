//go:build !linux && !windows

package private

import "os"

// Dir does not check: this platform observes nothing.
func Dir(dir string) (*os.Root, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return os.OpenRoot(dir)
}
