package redact

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

func TestAnInheritedEnvironmentAddsTheSame(t *testing.T) {
	id := "5b2919415cea791dd4ddff000f46e4ada5386e0c3147ae17ac5eebb82e008418"
	environments := [][]string{
		{"PATH=/usr/local/sbin:/usr/bin", "HOME=/root", "TOKEN=Xq7Canary9Zt", "ID=5a3c1f0e9b7d4c2a8e6f1b3d5c7a9e0f"},
		{"NODE=shop-web", "SHELL=/bin/web/Xq7Canary9Zt", "X=" + id[:12], `J={"user":"web","pin":"winter"}`, "Y=1.2.3.4web0"},
		{"PIN=abcde", "HOSTNAME=node-abcde"},
		nil,
	}
	var from Inherited
	for range 2 {
		for _, names := range [][]string{{"web", "ADD", id}, {"lo"}, {"/run/netns/cni-1", "user", "5a3c1f0e9b"}, nil} {
			for _, all := range environments {
				for _, before := range [][]string{nil, {"PASSWORD=spring0815"}} {
					var want, got Call
					for _, c := range []*Call{&want, &got} {
						c.Name(names...)
						c.Environment(before...)
					}
					want.Environment(all...)
					got.Inherit(&from, all...)
					got.Inherit(&from, all...)
					harness.Equal(t, values(got), values(want), names, all)
					harness.Equal(t, got.kept, want.kept, names, all)
					for v := range want.values {
						harness.Equal(t, got.Repeats(v), want.Repeats(v), v)
						harness.Equal(t, got.Message("of "+v), want.Message("of "+v), v)
					}
					got.Arguments("Another7Canary")
				}
			}
		}
	}
}

func values(c Call) string {
	all := slices.Sorted(maps.Keys(c.values))
	return fmt.Sprint(all, slices.Sorted(maps.Keys(c.short)))
}
