// Package rig starts private real components around cniscope: a containerd with its own root, state, sockets, NRI and
// CNI directories, a pause image, pods over CRI, and a Jaeger on loopback. The host's containerd and CNI directories
// stay untouched.
//
// Everything carries the rig's name: processes in their environment, mounts and files below its directory, links by
// prefix, firewall rules by subnet, cgroups by parent. So Close removes everything, and the next Start sweeps a rig
// whose owner was killed.
//
// It serves end-to-end tests and the demo, on Linux as root, with the binaries of `make tools`.
package rig
