package judge

import "fmt"

// failed: what a plugin says went wrong is the verdict, and what it waited for before, if
// that took long.
func failed(m *matter) *Verdict {
	if m.Failed == nil {
		return missing(m)
	}
	if v := busyAgent(m); v != nil {
		return v
	}
	if c := refusedLast(m.Failed); c != nil {
		v := refusal(c)
		v.Says = m.Failure + "; before that it was " + v.Says
		return &v
	}
	v := &Verdict{Cause: CauseFailed, Says: m.Failure}
	if m.Slow > 0 {
		if slow := m.slow(); slow != nil {
			v.Says += fmt.Sprintf("; before that, %s", slow.Says)
			v.Remedy, v.Report = slow.Remedy, slow.Report
		}
	}
	return v
}
