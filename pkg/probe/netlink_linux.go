package probe

import "github.com/cniscope/cniscope/pkg/event"

// netlink returns what was asked of the kernel, or how it answered.
func (in *interior) netlink(record) ([]event.Body, error) { return nil, nil }

// legacy is an ioctl on a socket, or a table of iptables' own interface.
func legacy(record) *event.Request { return nil }
