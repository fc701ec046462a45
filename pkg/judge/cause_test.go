package judge

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every cause has a name and, except for a plugin's own words, a remedy.
func TestEveryCauseIsKnownInGeneral(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	declared := 0
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`Cause\w+\s+(?:Cause\s+)?= "(\w+)"`).FindAllSubmatch(source, -1) {
			declared++
			about := Cause(found[1]).About()
			if about.Name == string(about.Cause) && strings.Contains(about.Name, "_") {
				t.Errorf("%s has no name", about.Cause)
			}
			if about.Remedy == "" && about.Cause != CauseFailed {
				t.Errorf("%s has no remedy", about.Cause)
			}
			if len(about.Parts) == 0 && about.Cause != CauseFailed && about.Cause != CauseMissing {
				t.Errorf("%s accounts for no time", about.Cause)
			}
		}
	}
	if known := len(Causes()); declared != known {
		t.Errorf("%d causes are declared, %d known in general", declared, known)
	}
	names := map[string]bool{}
	for _, about := range Causes() {
		if names[about.Name] {
			t.Errorf("two causes are called %s", about.Name)
		}
		names[about.Name] = true
	}
}

// The cause of a kind of part lists that kind.
func TestEveryPartIsPutDownToACause(t *testing.T) {
	for _, kind := range []PartKind{Locks, KernelLocks, Network, SystemCalls, DAD, Agents, Sleep, Waiting, Commands, Plugins, Between, Unexplained} {
		about, of := kind.Cause().About(), false
		for _, part := range about.Parts {
			of = of || part == kind
		}
		if !of {
			t.Errorf("%s is put down to %s, which accounts for %v", kind, about.Cause, about.Parts)
		}
	}
}
