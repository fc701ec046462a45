package judge

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

// mounting adds a bind mount.
func mounting(when model.Interval, change ...func(*event.Mount)) func(*model.Image) {
	return func(im *model.Image) {
		m := &event.Mount{Name: "mount", Source: "/csi/data", Target: "/run/netns/a", Flags: []string{"bind"}}
		for _, f := range change {
			f(m)
		}
		fact(im, when, &model.Mount{Mount: m})
	}
}

func TestASlowMount(t *testing.T) {
	rulings(t, map[string]ruling{
		"a plugin binds a path whose file system does not answer": {
			op:    add(seen(plugin("bridge", 0, 2000), mounting(from(50, 1900)))),
			cause: CauseMount, says: `^1\.85s of 2s: bridge waited for mount of /run/netns/a \(bind, from /csi/data\)$`, remedy: `program that serves the file system`,
		},
		"a file system by its type, and in vain": {
			op: add(seen(plugin("bridge", 0, 2000), mounting(from(50, 1900), func(m *event.Mount) {
				m.FSType, m.Source, m.Flags, m.Error = "fuse", "none", nil, "ENOTCONN"
			}))),
			cause: CauseMount, says: `bridge waited for mount of /run/netns/a \(fuse, failed with ENOTCONN\)$`,
		},
		"several, of which the longest is named": {
			op: add(seen(plugin("bridge", 0, 2000), mounting(from(50, 700)), mounting(from(700, 1900), func(m *event.Mount) {
				m.Name, m.Source, m.Target, m.Flags = "umount2", "", "/run/netns/b", []string{"detach"}
			}))),
			cause: CauseMount, says: `^1\.85s of 2s: bridge waited for unmount of /run/netns/b \(detach\) \(2 times\)$`,
		},
		"a command's counts, too": {
			op: add(plugin("bridge", 0, 2000, with(ran("mount", 10, 1950), mounting(from(50, 1900))))), cause: CauseMount, says: `mount waited for mount of`,
		},
		"control: it computes meanwhile": {
			op: add(seen(plugin("bridge", 0, 2000), mounting(from(50, 100)), slept(from(100, 1900)))), cause: CauseSleep,
		},
	})
}
