package main

import (
	"os"
	"regexp"
	"slices"
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

// docs/exit-codes.md has the table of the program; make golden writes it.
func TestGoldenExitCodes(t *testing.T) {
	generated(t, "docs/exit-codes.md", regexp.MustCompile(`(?s)(<!-- generated: exit codes -->\n).*?(<!-- end -->)`),
		func(part []string) string { return part[1] + exitTable() + part[2] })
	for _, c := range rootCmd().Commands() {
		if slices.Equal(exitsOf(c.Name()), exitsOf("")) && !c.Hidden && c.Name() != "config" && c.Name() != "completion" && c.Name() != "help" {
			t.Errorf("%s has no exit codes of its own", c.Name())
		}
	}
}
