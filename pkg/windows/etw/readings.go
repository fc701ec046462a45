package etw

import (
	"maps"
	"slices"

	"github.com/cniscope/cniscope/pkg/meter"
)

const (
	undecodable = "Events of processes that were not understood, by what they are and why: of a version that is not known, or cut off."
	lost        = "What event tracing could not deliver: single events, and buffers of many."
)

// Readings returns the metrics.
func (s Stats) Readings() []meter.Reading {
	all := []meter.Reading{
		meter.Count("etw_events_total", "Events of processes that event tracing delivered.", s.Events),
		meter.Count("etw_changes_total", "Starts and ends of processes that these events tell of.", s.Changes),
		meter.Count("etw_changes_single_total", "Starts and ends that only one of the two sessions told of.", s.Single),
		meter.Count("etw_changes_late_total", "Starts and ends that came after their turn.", s.Late),
		meter.Count("etw_lost_total", lost, s.LostEvents, "what", "events"),
		meter.Count("etw_lost_total", lost, s.LostBuffers, "what", "buffers"),
	}
	for why, counts := range map[string]map[string]uint64{"version": s.Unknown, "cut off": s.Malformed} {
		for _, event := range slices.Sorted(maps.Keys(counts)) {
			all = append(all, meter.Count("etw_events_undecodable_total", undecodable, counts[event], "event", event, "why", why))
		}
	}
	return all
}
