//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cniscope/cniscope/test/port"
	"github.com/cniscope/cniscope/test/scope"
)

// bursts are numbers of concurrent pods: a busy scheduler's, and a full node's with those that terminate.
var bursts = []int{30, 135}

type burst struct {
	pods  []float64 // ms
	whole float64   // ms
}

// measureBurst runs concurrent pods with and without cniscope, alternately.
func measureBurst(ctx context.Context, n *node) (rows []row, err error) {
	// Warm up; the first pod alone, because concurrent portmaps fail to create the same chain.
	if _, err := n.pod(ctx); err != nil {
		return nil, err
	}
	if _, err := n.burst(ctx, bursts[0]); err != nil {
		return nil, err
	}
	for _, size := range bursts {
		more, err := n.bursts(ctx, size, n.settings.bursts)
		rows = append(rows, more...)
		if err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// A size is finished if half of the interval of the median's ratio is below enough.
const (
	leastRounds = 8
	enough      = 0.03
)

// bursts takes turns until the ratio is known well enough, up to most rounds. If it is interrupted, it returns what
// whole rounds measured.
func (n *node) bursts(ctx context.Context, size, most int) ([]row, error) {
	var without, with []burst
	var cost observed
	p50 := func(b []burst) float64 { return quantile(podsOf(b), 0.5) }
	p99 := func(b []burst) float64 { return quantile(podsOf(b), 0.99) }
	ratio := func(of func(b []burst) float64) (value, low, high float64) {
		by := func(which []int) float64 { return of(drawn(with, which)) / of(drawn(without, which)) }
		low, high = interval(len(with), by)
		return by(upTo(len(with))), low, high
	}
	arrived, known := n.sink.spans.Load(), false
	var failed error
	for round := 0; round < most && !known; round++ {
		var b [2]burst
		plain := func() (err error) { b[0], err = n.burst(ctx, size); return err }
		watched := func() (err error) { b[1], err = n.watched(ctx, size, &cost, false); return err }
		turns := []func() error{plain, watched}
		if round%2 == 1 {
			slices.Reverse(turns)
		}
		for _, turn := range turns {
			if failed == nil {
				failed = turn()
			}
		}
		if failed != nil {
			break
		}
		without, with = append(without, b[0]), append(with, b[1])
		value, low, high := ratio(p50)
		say("burst of %d pods, round %d, at most %d: ratio of p50 %.3f (%.3f to %.3f)", size, round+1, most, value, low, high)
		known = round+1 >= leastRounds && (high-low)/2 < enough
	}
	if len(with) == 0 {
		return nil, failed
	}
	arrived = n.sink.spans.Load() - arrived
	spent := cost.cpu / float64(len(with)*size)
	if failed == nil {
		_, failed = n.watched(ctx, size, &cost, true)
	}
	name := func(figure string) string { return fmt.Sprintf("%s, %d pods at once", figure, size) }
	compared := func(figure string, of func(b []burst) float64) row {
		value, low, high := ratio(of)
		note := fmt.Sprintf("%.0f ms with, %.0f ms without; 95 %% bootstrap interval over %d rounds: %.3f to %.3f", of(with), of(without), len(with), low, high)
		if (high-low)/2 >= enough {
			note += fmt.Sprintf("; wider than ±%.0f %%", 100*enough)
		}
		return row{figure: name("ratio of " + figure), value: value, unit: "", note: note}
	}
	load, _ := os.ReadFile("/proc/loadavg")
	rows := []row{
		compared("RunPodSandbox, p50", p50),
		compared("RunPodSandbox, p99", p99),
		compared("the whole burst, median", wholes),
		{figure: name("events lost"), value: cost.lost, unit: "", note: fmt.Sprintf("%d spans arrived from %d rounds with cniscope, none without", arrived, len(with))},
		{figure: name("CPU of cniscope, a pod"), value: spent, unit: "ms", note: "set up and torn down; the hooks run on the plugins' account"},
		{figure: name("own time of the NRI handler, p99"), value: micro(median(cost.handlers)), unit: "µs", budget: 1000, note: "median of the rounds; the true values are up to 20 % less"},
		{figure: name("RSS at the peak"), value: mib(cost.peak), unit: "MiB", note: "highest of all rounds; load " + strings.TrimSpace(string(load))},
	}
	if failed == nil {
		rows = append(rows, row{figure: name("RSS a minute later"), value: mib(cost.later.all()), unit: "MiB", budget: rssBudget, note: cost.later.String()})
	}
	return rows, failed
}

type observed struct {
	cpu, lost float64         // ms; events
	peak      int             // KiB
	later     memory          // a minute after the last round
	handlers  []time.Duration // p99 of each round
}

// givenBack exceeds the time until memory is released: releaseEvery of pkg/node, and a margin.
const givenBack = 70 * time.Second

// watched runs a burst with a cniscope, until everything settled; the last one a minute longer.
func (n *node) watched(ctx context.Context, size int, cost *observed, last bool) (b burst, err error) {
	at, err := port.Reserve()
	if err != nil {
		return b, err
	}
	defer at.Close()
	observer, err := n.observe(ctx, fmt.Sprintf("[metrics]\nlisten = %q\n", at.Addr))
	if err != nil {
		return b, err
	}
	defer func() { err = errors.Join(err, observer.Stop()) }()
	before, err := cpuTime(observer.PID())
	if err != nil {
		return b, err
	}
	peak := watchMemory(observer.PID())
	b, err = n.burst(ctx, size)
	if err == nil {
		err = pause(ctx, 5*time.Second) // settle and send
	}
	cost.peak = max(cost.peak, peak())
	if err != nil {
		return b, err
	}
	now, err := cpuTime(observer.PID())
	if err != nil {
		return b, err
	}
	cost.cpu += float64(now-before) / float64(time.Millisecond)
	lost, err := lostEvents(ctx, at.Addr)
	cost.lost += lost
	if err == nil && last {
		if err = pause(ctx, givenBack); err == nil {
			cost.later, err = memoryOf(observer.PID())
		}
	}
	if err = errors.Join(err, observer.Stop()); err != nil {
		return b, err
	}
	handler, err := handlerTimes(observer)
	cost.handlers = append(cost.handlers, handler.p99)
	return b, err
}

func (n *node) burst(ctx context.Context, size int) (b burst, err error) {
	ids, errs := make([]string, size), make([]error, size)
	b.pods = make([]float64, size)
	began := time.Now()
	var group sync.WaitGroup
	for i := range size {
		group.Go(func() {
			ids[i], errs[i] = n.run(ctx)
			b.pods[i] = float64(time.Since(began)) / float64(time.Millisecond)
		})
	}
	group.Wait()
	b.whole = slices.Max(b.pods)
	for _, id := range ids {
		if id != "" {
			errs = append(errs, n.rig.RemovePod(ctx, id))
		}
	}
	return b, errors.Join(errs...)
}

func podsOf(all []burst) (pods []float64) {
	for _, b := range all {
		pods = append(pods, b.pods...)
	}
	return pods
}

func wholes(all []burst) float64 {
	var each []float64
	for _, b := range all {
		each = append(each, b.whole)
	}
	return median(each)
}

func lostEvents(ctx context.Context, address string) (lost float64, err error) {
	values, err := scraped(ctx, "http://"+address+"/metrics")
	for series, n := range values {
		if strings.HasPrefix(series, "cniscope_events_lost_total{") {
			lost += n
		}
	}
	return lost, err
}

// scraped returns the values of a metrics page by series.
func scraped(ctx context.Context, url string) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := (&http.Client{Timeout: 10 * time.Second}).Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	return scope.Values(string(page))
}
