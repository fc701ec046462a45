package timeline

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
)

func stdin(is string) func(*event.Exec) { return func(e *event.Exec) { e.Stdin = is } }

// A run's process stays that run, whatever it execs and reads: a wrapper may pass the real plugin another
// configuration. Its forks may be delegated plugins.
func TestWrappers(t *testing.T) {
	stories{
		"with nothing to read, or what is unknown": {func(s *story) {
			s.plugin(0, "b", "ADD", "wrapped").image(2, "b", "cd", "real", delegate, stdin(event.NoStdin)).exit(6, "b").
				plugin(10, "p", "ADD", "wrapper2").image(12, "p", "cd", "real2", delegate, stdin("")).exit(16, "p").tick(2000)
		}, `setup c1 0-16: settled
  ADD eth0 0-16: wrapped ADD 0-6 [real 2-6], wrapper2 ADD 10-16 [real2 12-16]`},
		"twice, with another one each time": {func(s *story) {
			s.plugin(0, "b", "ADD", "outer").image(1, "b", "cd", "inner", delegate, stdin("one")).
				image(2, "b", "cd", "real", delegate, stdin("two")).
				exit(6, "b", 1).tick(2000)
		}, `setup c1 0-6: settled
  ADD eth0 0-6: outer ADD 0-6 (exit 1) [inner 1-2 (replaced), real 2-6 (exit 1)]`},
		"a delegate that is itself a wrapper": {func(s *story) {
			s.plugin(0, "b", "ADD", "bridge").command(1, "w", "b", "ipam-wrapper", delegate).
				image(2, "w", "b", "host-local", delegate, stdin("heredoc")).command(3, "x", "w", "flock").exit(4, "x").
				exit(5, "w").exit(6, "b").tick(2000)
		}, `setup c1 0-6: settled
  ADD eth0 0-6: bridge ADD 0-6 [ipam-wrapper ADD 1-5 [host-local 2-5 [flock 3-4]]]`},
		"a wrapper that an agent runs": {func(s *story) {
			s.plugin(0, "s", "ADD", "shim").plugin(1, "b", "ADD", "wrapped", by("agent")).
				image(2, "b", "agent", "real", delegate, stdin("heredoc")).exit(5, "b").exit(6, "s").tick(2000)
		}, `setup c1 0-6: settled
  ADD eth0 0-6: shim ADD 0-6 [wrapped ADD 1-5 [real 2-5]]`},
	}.each(t, tell, func(s *story) string {
		s.over()
		return draw(s.closed)
	})
}
