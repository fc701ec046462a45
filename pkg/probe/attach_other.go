//go:build !linux && !windows

package probe

// attach fails with an UnsupportedError.
func attach(o Options) (*observer, error) {
	_, err := Open(o)
	return nil, err
}
