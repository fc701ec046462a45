//go:build linux

package scenarios

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/spans"
)

const unexplainedPods = "CNISCOPE_TEST_PODS"

// With the relay, little of RunPodSandbox as its client measures it is unexplained.
func TestUnexplainedTimeOfStarts(t *testing.T) {
	pods, checked := 10, false
	if n, err := strconv.Atoi(os.Getenv(unexplainedPods)); err == nil {
		pods, checked = n, true
	}
	relay := harness.Address(t)
	s := set(t, rig.Options{OTLP: "http://" + relay}, fmt.Sprintf("[slow]\ncall = \"1m\"\n[relay]\nlisten = %q\n", relay))
	s.network("pods", rig.Bridge())
	shares := s.unexplained(s.startMany(pods, 30))
	slices.Sort(shares)
	p99 := shares[len(shares)*99/100]
	t.Logf("%d pods: unexplained of RunPodSandbox: median %.2f %%, p99 %.2f %%, most %.2f %%", pods, shares[len(shares)/2], p99, shares[len(shares)-1])
	if checked && p99 > 5 {
		t.Errorf("p99 of the unexplained is %.2f %%", p99)
	}
}

// startMany returns what the client measured.
func (s *scene) startMany(pods, atOnce int) map[string]time.Duration {
	s.Helper()
	var all sync.WaitGroup
	var mu sync.Mutex
	took := map[string]time.Duration{}
	next := make(chan string)
	for range atOnce {
		all.Go(func() {
			for name := range next {
				began := time.Now()
				id, err := s.rig.RunPod(s.ctx, rig.PodOptions{Namespace: "shop", Name: name})
				mu.Lock()
				took[name] = time.Since(began)
				mu.Unlock()
				if err == nil {
					err = s.rig.EndPod(s.ctx, id)
				}
				if err != nil {
					s.Error(err)
				}
			}
		})
	}
	for i := range pods {
		next <- fmt.Sprintf("many-%d", i)
	}
	close(next)
	all.Wait()
	return took
}

// unexplained returns percentages of what the client measured.
func (s *scene) unexplained(took map[string]time.Duration) (shares []float64) {
	s.Helper()
	of := map[string][]*spans.Span{}
	harness.Eventually(s, func() error {
		all, err := spans.Read(s.spans)
		clear(of)
		starts := 0
		for _, x := range all {
			switch x.Attrs["cniscope.kind"] {
			case "start":
				starts++
				fallthrough
			case "step", "call":
				of[x.Attrs["k8s.pod.name"]] = append(of[x.Attrs["k8s.pod.name"]], x)
			}
		}
		if err == nil && starts < len(took) {
			err = fmt.Errorf("%d starts of %d", starts, len(took))
		}
		return err
	})
	sums := map[string]float64{}
	for pod, whole := range took {
		ms := float64(whole) / 1e6
		var outer *spans.Span
		begin, inCNI := int64(0), 0.0
		for _, x := range of[pod] {
			switch {
			case x.Name == "CNI DEL":
				continue
			case x.Attrs["cniscope.kind"] == "start":
				outer = x
			case x.Name == "CNI ADD" && x.Attrs["cni.ifname"] == "eth0":
				inCNI += x.Ms("cniscope.time.unexplained_ms")
			case x.Attrs["cniscope.kind"] == "step":
				sums[x.Name] += x.Took()
			}
			if begin == 0 || x.Start() < begin {
				begin = x.Start()
			}
		}
		if outer == nil {
			s.Fatalf("no start of %s", pod)
		}
		seen := float64(outer.End()-begin) / 1e6
		between := outer.Ms("cniscope.time.unexplained_ms")
		sums["whole"] += ms
		sums["- outside"] += ms - seen
		sums["- within the start"] += between
		sums["- within CNI"] += inCNI
		sums["- runtime"] += outer.Ms("cniscope.time.between_runs_ms")
		shares = append(shares, 100*(ms-seen+between+inCNI)/ms)
	}
	for name, sum := range sums {
		s.Logf("%s: %.1f ms of a pod", name, sum/float64(len(took)))
	}
	return shares
}
