package timeline

import (
	"time"
)

// Options bound what a timeline waits for and holds.
type Options struct {
	// Settle is how long after its last run an operation waits for more: for the next
	// plugin of the chain, and for NRI to name the pod.
	Settle time.Duration
	// MaxHold is how long an operation is held at the most.
	MaxHold time.Duration
	// Wait is how long an operation that is over waits for the runtime's spans (event.Above),
	// if the environment of its calls names no parent. 0: it does not wait.
	Wait time.Duration
	// Hung is how long a call may take before Timeline.Overdue returns it; 0 is for ever.
	Hung time.Duration
	// MinSpan is how long a wait or a query lasts at least that is kept, and not only counted.
	MinSpan time.Duration
	// Processes and Operations are how many are held at once, Images and Facts how many of
	// each one operation keeps. What exceeds a limit is counted.
	Processes, Operations, Images, Facts int
}
