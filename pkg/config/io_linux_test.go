package config

import (
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/disktest"
	"github.com/cniscope/cniscope/test/harness"
)

// After any failing call the old options stay, and a retry applies the new ones.
func TestEachCallOfAReloadFailsOnce(t *testing.T) {
	disktest.Sweep(t, []disktest.Fault{disktest.EIO}, func(t *testing.T, at int, fault disktest.Fault) *disktest.Disk {
		s := newScene(t, `slow.call = "1s"`)
		d := harness.Must(disktest.New("", at, fault))(t)
		s.live = harness.Must(Open(Source{Base: Default(), Path: s.file}))(t)
		s.live.source.Disk, s.live.retry = d, time.Millisecond
		s.write(`slow.call = "3s"`)
		s.run()
		for o := range s.applied {
			if o.Slow.Call == 3*time.Second {
				break
			}
			t.Errorf("options were handed out that nobody set: %v", o.Slow.Call)
		}
		return d
	})
}
