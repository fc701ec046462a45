//go:build !linux && !windows

package probe

func attach(Options) (*observer, error) {
	return nil, &UnsupportedError{Need: "Linux or Windows", Remedy: "on this platform only recordings can be shown"}
}
