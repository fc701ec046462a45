// Package kernels boots the kernel probe in virtual machines, on the kernels that Debian
// has, and says which feature is there on which: testdata/features.md. vm is all that runs in
// such a machine; fetch.sh gets the kernels. Nothing here needs root or KVM.
package kernels
