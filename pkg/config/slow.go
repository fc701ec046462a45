package config

import "time"

// Rule is a threshold for the commands that a pattern matches.
type Rule struct {
	// Command is a pattern of path.Match for the name a command was called by, or
	// for the base name of its file. Upper and lower case are the same.
	Command string
	// Threshold is from when on such a command is slow.
	Threshold time.Duration
}

// A command below a microsecond does not exist; whoever wants nothing flagged
// sets a day.
const (
	shortest = time.Microsecond
	longest  = 24 * time.Hour
)

// rules is the list [[slow.rule]].
func rules() kind[[]Rule] {
	return ruleList("slow.rule", "command", pattern("iptables*"), "threshold", span(shortest, longest),
		func(command string, threshold time.Duration) Rule { return Rule{command, threshold} },
		func(r Rule) (string, time.Duration) { return r.Command, r.Threshold })
}
