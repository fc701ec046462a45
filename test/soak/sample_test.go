//go:build linux

package soak

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cniscope/cniscope/test/scope"
)

func (n *node) scrape(ctx context.Context) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.metrics.Addr+"/metrics", http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Close = true // an open connection would count as a descriptor
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("metrics: %s", answer.Status)
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	return scope.Values(string(body))
}

var losses = []string{
	"cniscope_events_lost_total", "cniscope_export_operations_dropped_total", "cniscope_runs_refused_total", "cniscope_unanchored_refused_total",
	"cniscope_bpf_program_missed_total", "cniscope_export_spans_refused_total",
}

// lost returns the current life's losses by reason; the last known ones if it does not answer.
func (n *node) lost() map[string]float64 {
	ctx, cancel := context.WithTimeout(n.Context(), patience/10)
	defer cancel()
	m, err := n.scrape(ctx)
	if err != nil {
		return n.current().Lost
	}
	found := map[string]float64{}
	for name, v := range m {
		for _, l := range losses {
			if v > 0 && (name == l || strings.HasPrefix(name, l+"{")) {
				found[name] = v
			}
		}
	}
	return found
}

type sample struct {
	Life int
	Pods int // in this life
	// RSS is anonymous memory, Heap Go's allocated part, in KiB.
	RSS, Heap                              float64
	FDs, Goroutines, Maps, Programs, Procs float64
}

func (n *node) sample(ctx context.Context) (s sample, err error) {
	l := n.current()
	s.Life, s.Pods = l.Number, l.Pods
	pid := l.scope.PID()
	m, err := n.scrape(ctx)
	if err != nil {
		return s, err
	}
	s.Heap, s.Goroutines, s.Procs = m["go_memstats_heap_alloc_bytes"]/1024, m["go_goroutines"], m["cniscope_probe_processes"]
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return s, err
	}
	for line := range strings.Lines(string(text)) {
		if value, is := strings.CutPrefix(line, "RssAnon:"); is {
			if s.RSS, err = strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 64); err != nil {
				return s, err
			}
		}
	}
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", pid))
	if err != nil {
		return s, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // closed since
		}
		s.FDs++
		if strings.Contains(string(text), "\nmap_id:") {
			s.Maps++
		}
		if strings.Contains(string(text), "\nprog_id:") {
			s.Programs++
		}
	}
	return s, nil
}
