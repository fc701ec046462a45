package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

// beProgram is the variable by which the test's program is cniscope itself.
const beProgram = "CNISCOPE_TEST_IS_CNISCOPE"

func TestMain(m *testing.M) {
	if os.Getenv(beProgram) != "" {
		os.Exit(execute())
	}
	os.Exit(harness.Host(m))
}

func TestTheTableOfExitCodesIsWhatTheProgramSays(t *testing.T) {
	const page = "../../docs/exit-codes.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if table := exitTable(); !strings.Contains(string(text), table) {
		t.Errorf("%s lacks the table as it is now:\n%s", page, table)
	}
	for _, c := range rootCmd().Commands() {
		if slices.Equal(exitsOf(c.Name()), exitsOf("")) && !c.Hidden && c.Name() != "config" && c.Name() != "completion" && c.Name() != "help" {
			t.Errorf("%s has no exit codes of its own", c.Name())
		}
	}
}
