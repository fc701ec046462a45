//go:build linux

package scenarios

import (
	"fmt"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/spans"
)

func (s *scene) blamed() {
	s.Helper()
	harness.Eventually(s, func() error {
		all, err := spans.Read(s.spans)
		if err != nil {
			return err
		}
		runs := map[string]*span{}
		for _, x := range all {
			if x.Attrs["cniscope.kind"] == "run" || x.Attrs["cniscope.kind"] == "delegate" {
				runs[x.TraceID+x.SpanID] = x
			}
		}
		links, others := 0, 0
		for _, x := range all {
			for _, l := range x.Links {
				if spans.Texts(l.Attributes)["cniscope.link"] != "it had the lock" {
					continue
				}
				links++
				switch run := runs[l.TraceID+l.SpanID]; {
				case run == nil:
					return fmt.Errorf("%s of %s, from %s to %s, held by %s (pid %s), links to a run that is not there",
						x.Name, x.Attrs["k8s.pod.name"], x.StartTimeUnixNano, x.EndTimeUnixNano, x.Attrs["cniscope.lock.holder_name"], x.Attrs["cniscope.lock.holder_pid"])
				case run.Attrs["k8s.pod.name"] != x.Attrs["k8s.pod.name"]:
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
