package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
)

// beProgram is the variable by which the test's program is cniscope itself.
const beProgram = "CNISCOPE_TEST_IS_CNISCOPE"

func TestMain(m *testing.M) {
	// cniscope starts itself with a command, and go test only has flags.
	if os.Getenv(beProgram) != "" || len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		os.Exit(execute())
	}
	time.Local = time.FixedZone("elsewhere", 5*3600+1800) // outputs are in UTC
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

func exitTable() string {
	var b strings.Builder
	b.WriteString("| command | exit code | when |\n|---|---|---|\n")
	for _, e := range exits() {
		command := "`" + e.command + "`"
		if e.command == "" {
			command = "every command"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", command, e.code, e.when)
	}
	return b.String()
}
