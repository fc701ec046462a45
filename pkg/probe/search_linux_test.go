package probe

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

// pieceSize is PIECE of bpf/wire.h: the part of an environment that is searched at once.
const pieceSize = 2048

// padded puts variables before env, so that it begins at byte place.
func padded(place int, env []string) []string {
	if place == 0 {
		return env
	}
	return append([]string{strings.Repeat("x", place-1)}, env...)
}

func TestACallIsFoundWhereverItsCommandLies(t *testing.T) {
	var places []int
	for i := range 16 {
		places = append(places, i, pieceSize-15+i, 40*pieceSize-15+i)
	}
	seen := observe(t, func(*observed) {
		for _, place := range places {
			cmd := plugin(t, fmt.Sprint("at", place), "exit 0")
			rest := slices.DeleteFunc(cmd.Env, func(kv string) bool { return kv == "CNI_COMMAND=ADD" })
			cmd.Env = padded(place, append([]string{"CNI_COMMAND=ADD"}, rest...))
			harness.Check(t, cmd.Run())
		}
	})
	found := map[string]bool{}
	for _, e := range seen.execs() {
		found[e.Name] = e.Root && e.Call != nil && e.Call.Command == "ADD"
	}
	for _, place := range places {
		if !found[fmt.Sprint("at", place)] {
			t.Errorf("not seen: CNI_COMMAND at %d", place)
		}
	}
}

func TestWhatLooksLikeACommandIsNone(t *testing.T) {
	seen := observe(t, func(*observed) {
		for _, lookalike := range []string{"XCNI_COMMAND=ADD", "CNI_COMMANDS=ADD", "cni_command=ADD", "PROMPT_COMMAND=ADD", "A=\nCNI_COMMAND=ADD"} {
			cmd := plugin(t, "none", "exit 0")
			for i, kv := range cmd.Env {
				if kv == "CNI_COMMAND=ADD" {
					cmd.Env[i] = lookalike
				}
			}
			harness.Check(t, cmd.Run())
		}
	})
	for _, e := range seen.execs() {
		t.Errorf("seen: %+v", e)
	}
}

func TestAnEnvironmentThatIsTooLongIsCounted(t *testing.T) {
	seen := observe(t, func(*observed) {
		cmd := plugin(t, "huge", "exit 0")
		cmd.Env = []string{"A=" + strings.Repeat("a", 100_000), "B=" + strings.Repeat("b", 100_000), "C=" + strings.Repeat("c", 100_000)}
		harness.Check(t, cmd.Run())
	})
	if seen.stats.Lost["environment too long"] == 0 {
		t.Error("not counted")
	}
}
