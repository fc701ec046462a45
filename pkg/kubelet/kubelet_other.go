//go:build !linux

// Package kubelet finds the kubelet's API server, which needs no service network.
package kubelet

import "errors"

// APIServer is known on Linux only.
func APIServer() (string, error) { return "", errors.New("not on this system") }

// DNS is known on Linux only.
func DNS() (server, domain string) { return "", "" }
