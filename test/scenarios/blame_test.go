//go:build linux

package scenarios

import (
	"fmt"

	"github.com/cniscope/cniscope/test/harness"
)

func (s *scene) blamed() {
	s.Helper()
	harness.Eventually(s, func() error {
		all, err := s.read()
		if err != nil {
			return err
		}
		runs := map[string]*span{}
		for _, x := range all {
			if x.attrs["cniscope.kind"] == "run" || x.attrs["cniscope.kind"] == "delegate" {
				runs[x.TraceID+x.SpanID] = x
			}
		}
		links, others := 0, 0
		for _, x := range all {
			for _, l := range x.Links {
				if texts(l.Attributes)["cniscope.link"] != "it had the lock" {
					continue
				}
				links++
				switch run := runs[l.TraceID+l.SpanID]; {
				case run == nil:
					return fmt.Errorf("%s of %s, from %s to %s, held by %s (pid %s), links to a run that is not there",
						x.Name, x.attrs["k8s.pod.name"], x.StartTimeUnixNano, x.EndTimeUnixNano, x.attrs["cniscope.lock.holder_name"], x.attrs["cniscope.lock.holder_pid"])
				case run.attrs["k8s.pod.name"] != x.attrs["k8s.pod.name"]:
					others++
				}
			}
		}
		s.Logf("%d waits link to the run that had the lock, %d of them to another pod's", links, others)
		if others == 0 {
			return fmt.Errorf("no wait links to another pod's run")
		}
		return nil
	})
}
