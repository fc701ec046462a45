//go:build !linux && !windows

package anchor

import (
	"context"
	"net"
)

func lookUp(int) (Anchor, bool) { return Anchor{}, false }

// Peer returns 0: only Linux and Windows have it.
func Peer(net.Conn) int { return 0 }

// Ask does nothing on this platform.
func (s *Set) Ask(context.Context, string) error { return nil }

// Name does nothing on this platform.
func (s *Set) Name([]string, bool) {}
