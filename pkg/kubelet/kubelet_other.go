//go:build !linux

// Package kubelet finds the API server that the kubelet of this node uses, which does not depend on the service network.
package kubelet

import "errors"

// APIServer is known on Linux only.
func APIServer() (string, error) { return "", errors.New("not on this system") }
