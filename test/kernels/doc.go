// Package kernels boots the kernel probe in virtual machines with Debian's kernels and records their features:
// testdata/features.md. vm is the machine's only program; fetch.sh downloads kernels. It needs neither root nor KVM.
package kernels
