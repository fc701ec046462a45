//go:build !windows

package cniconf

// DefaultDir is the conf_dir of containerd and of CRI-O.
func DefaultDir() string { return "/etc/cni/net.d" }
