package etw

import (
	"maps"
	"slices"

	"github.com/cniscope/cniscope/pkg/meter"
)

const (
	undecodable = "Unknown events of event tracing, by event and reason. Report them with a recording (cniscope record " +
		"--etl)."
	lost = "Events and buffers that Windows lost."
)

// Readings returns the metrics.
func (s Stats) Readings() []meter.Reading {
	all := []meter.Reading{
		meter.Count("etw_events_total", "Process events that event tracing delivered (Windows).", s.Events),
		meter.Count("etw_changes_total", "Starts and exits of processes in these events.", s.Changes),
		meter.Count("etw_changes_single_total", "Starts and exits that only one of the two sessions reported.", s.Single),
		meter.Count("etw_changes_late_total", "Starts and exits that arrived out of order.", s.Late),
		meter.Count("etw_lost_total", lost, s.LostEvents, "what", "events"),
		meter.Count("etw_lost_total", lost, s.LostBuffers, "what", "buffers"),
	}
	for why, counts := range map[string]map[string]uint64{"version": s.Unknown, "cut off": s.Malformed} {
		for _, event := range slices.Sorted(maps.Keys(counts)) {
			all = append(all, meter.Count("etw_events_undecodable_total", undecodable, counts[event], "event", event, "why",
				why))
		}
	}
	return all
}
