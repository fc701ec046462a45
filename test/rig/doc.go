// Package rig starts the real parts around cniscope, privately: a containerd
// with its own root, state, sockets, NRI and CNI folders, a pause image built on
// the spot, pods over CRI, and a Jaeger that listens on loopback alone. The
// host's own containerd and CNI folders are never touched.
//
// Everything a rig makes carries its name: processes in their environment, mounts
// and files below its folder, links by their prefix, firewall rules by its
// subnets, cgroups by their parent. So Close leaves nothing behind, and neither
// does a rig whose owner was killed: the next Start finds its folder unlocked and
// sweeps it first.
//
// It is for end-to-end tests and the demo. It runs on Linux as root, and wants
// the binaries that `make tools` builds.
package rig
