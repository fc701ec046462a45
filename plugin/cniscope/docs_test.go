package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/cniscope/cniscope/test/harness"
)

// Examples come out of man as they are written: a line stays a line, and - is what the keyboard has.
func TestManPagesKeepTheirExamples(t *testing.T) {
	dir := t.TempDir()
	_, _, err := cniscope(t, "docs", dir)
	harness.Check(t, err)
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			if !c.Hidden && c.Name() != "help" && c.Name() != "completion" {
				walk(c)
			}
		}
		name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
		file := filepath.Join(dir, "man/man1", name)
		source, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
			return
		}
		if strings.Contains(string(source), "EXAMPLE") || strings.Count(string(source), "\n.nf\n") != strings.Count(string(source), "\n.fi\n") || !strings.Contains(string(source), ".SH EXIT STATUS") {
			t.Errorf("%s:\n%s", name, source)
		}
		page := rendered(t, file)
		for line := range strings.SplitSeq(cmd.Long+"\n"+cmd.Example, "\n") {
			if strings.HasPrefix(line, "  ") && !strings.Contains(page, strings.TrimSpace(line)) {
				t.Errorf("%s lacks the line %q:\n%s", name, line, page)
			}
		}
	}
	walk(rootCmd())
}

// rendered is the page as man shows it, with groff's warnings as errors.
func rendered(t *testing.T, file string) string {
	t.Helper()
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("needs groff")
	}
	c := exec.Command(groff, "-man", "-Tutf8", "-Kutf8", "-ww", "-rLL=80n", "-P-cbou", file)
	var wrong strings.Builder
	c.Stderr = &wrong
	page, err := c.Output()
	if err != nil || wrong.Len() > 0 {
		t.Errorf("groff: %v: %s", err, wrong.String())
	}
	return string(page)
}

func TestVerbatim(t *testing.T) {
	for line, want := range map[string]string{
		"":                   "",
		".so /etc/passwd":    `\&.so /etc/passwd`,
		"'quoted'":           `\&\(aqquoted\(aq`,
		`a\b --c ~ ^ ` + "`": `a\eb \-\-c \(ti \(ha \(ga`,
	} {
		harness.Equal(t, verbatim(line), want, line)
	}
}

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
