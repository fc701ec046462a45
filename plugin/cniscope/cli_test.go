package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

// Each row is a command line with its exit code, and what its output and error contain. Former flags are accepted.
func TestCommandLines(t *testing.T) {
	check(t, []commandLine{
		{"show --since 1h --spool /not/there", 1, "no spool there"},
		{"show --last 1d --spool /not/there", 1, "no spool there"},
		{"show --since 2w1d --spool /not/there", 1, "no spool there"},
		{"show " + threePods + " --otlp 127.0.0.1:1", 1, "cannot send to 127.0.0.1:1 (0 traces sent): Unavailable: dial tcp"},
		{"show --since 1y", 2, `invalid value "1y" of --since: want a number with a unit (ms, s, m, h, d or w), such as 90m`},
		{"show --since -1h", 2, "--since: want more than 0"},
		{"record x --for -60m", 2, "--for -60m: want a duration, such as 10m"},
		{"why x --limit 0", 2, "--limit 0: want 1 or more"},
		{"why x --last 0", 2, "--limit 0: want 1 or more"},
		{"why x --since 1z", 2, "--since"},
		{"top --since -1h", 2, "--since -1h: want more than 0"},
		{"show " + threePods + " -o otlp", 0, `{"resourceSpans":`},
		{"show " + threePods + " --output json", 0, `{"resourceSpans":`},
		{"show " + threePods + " --format json", 0, `{"resourceSpans":`},
		{"version -o json", 0, `"schema": "cniscope.dev/version/v1"`},
		{"ps -o yaml", 2, "want text or json"},
		{"ps --pod x -n y -o yaml", 2, "want text or json"},
		{"config check /not/there", 1, "cannot read the configuration file: "},
		{"config check -", 0, "-: valid"},
		{"config check - -o json", 0, `"schema": "cniscope.dev/config/v1"`},
		{"config print -o json", 0, `"key": "slow.call"`},
		{"record - -o json", 2, "for -o json name a file"},
		{"show", 2, "show needs a recording: give a FILE, or --since 1h"},
		{"show " + threePods + " --last 1h", 2, "not both"},
		{"show " + threePods + " --spool /tmp", 2, "--spool needs --since"},
		{"show --last 0", 2, "want more than 0"},
		{"show --since 1d --spool /x --color x", 2, "want auto, always or never"},
		{"show " + threePods + " " + threePods, 2, "show takes FILE|--since DURATION, got 2 arguments"},
		{"show " + threePods + " --html --summary", 2, "choose one of --html"},
		{"show " + threePods + " --html --format json", 2, "choose one of --html"},
		{"show " + threePods + " --summary --otlp 127.0.0.1:1", 2, "choose one of --html"},
		{"show " + threePods + " --html --otlp 127.0.0.1:1", 2, "choose one of --html"},
		{"version --color never", 0, "cniscope "},
		{"top --color maybe", 2, "want auto, always or never"},
		{"doctor -c /not/there --color always", 3, "cannot read the configuration file"},
		{"show " + threePods + " --problems --color always", 0, "\x1b[31;1m✗ shop/broken-0"},
		{"shwo", 2, `unknown command "shwo"; did you mean show?` + "\nTry 'cniscope --help'"},
		{"check --config x", 2, `unknown command "check"; did you mean config check?`},
		{"config nope", 2, `unknown command "nope"` + "\nTry 'cniscope config --help'"},
		{"config", 2, "config needs a command"},
		{"", 2, "cniscope needs a command"},
		{"help nope", 2, `unknown command "nope"`},
		{"help show", 0, "Examples:"},
		{"completion tcsh", 2, `unknown command "tcsh"`},
		{"show --summry", 2, "unknown flag: --summry; did you mean --summary?"},
		{"doctor foo", 2, `doctor takes no arguments, got "foo"` + "\nTry 'cniscope doctor --help'"},
		{"doctor --patience 0s", 2, "--answer-timeout want a duration"},
		{"why a b", 2, "why takes POD, got 2 arguments\nTry 'cniscope why --help'"},
		{"doctor -c /not/there", 3, "cannot read the configuration file"},
		{"record -q x --for -60m", 2, "--for -60m: want a duration"},
		{"diff " + threePods + " " + threePods, 0, "CNI ADD eth0  no significant change, but too few calls (3, usually 10 are enough): median"},
		{"diff a", 2, `diff takes A B, got "a"`},
		{"diff " + threePods + " /nonexistent.rec", 1, "no such file"},
		{"diff " + threePods + " " + threePods + " --pod other", 1, "there is nothing to compare"},
		{"diff " + threePods + " " + threePods + " --format xml", 2, "want text or json"},
		{"record", 2, "record needs an argument: cniscope record FILE|-"},
		{"__complete show --output ", 0, "text\njson\notlp\n"},
		{"__complete show --color ", 0, "auto\nalways\nnever\n"},
		{"__complete top --color ", 0, "auto\nalways\nnever\n"},
		{"__complete doctor --wait ", 0, "runtime\ncni\nagent\nready\ndns\n"},
		{"__complete record --output ", 0, "text\njson\n"},
		{"__complete diff ", 0, "rec\ngz\n"},
		{"__complete show ", 0, "rec\ngz\n"},
		{"-V", 0, "cniscope "},
		{"show " + threePods, 0, "\n  2026-11-20 18:05:42.825Z"},
	})
}

type commandLine struct {
	args string
	code int
	says string
}

func check(t *testing.T, all []commandLine) {
	t.Helper()
	for _, c := range all {
		t.Run(c.args, func(t *testing.T) {
			args := strings.Split(c.args, " ")
			if c.args == "" {
				args = []string{}
			}
			out, diagnostics, err := cniscope(t, args...)
			code := 0
			if err != nil {
				code = exitCode(err)
			}
			harness.Equal(t, code, c.code, err)
			harness.Says(t, out+diagnostics+fmt.Sprint(err), c.says)
		})
	}
}

// Pages and recordings are refused for a terminal.
func TestTerminalsGetNoFiles(t *testing.T) {
	terminal := harness.Terminal(t)
	for _, args := range []string{"show --html /not/there", "record - --config /not/there", "record - --etl"} {
		cmd := rootCmd()
		cmd.SetArgs(strings.Fields(args))
		cmd.SetOut(terminal)
		err := cmd.ExecuteContext(t.Context())
		harness.Says(t, fmt.Sprint(err), "standard output: redirect it to a file")
		harness.Equal(t, exitCode(err), 2, args)
	}
}

// COLUMNS bounds the lines of show, which lose nothing: a longer line is continued on the next.
func TestShowKeepsToTheColumns(t *testing.T) {
	words := func(columns string) []string {
		t.Setenv("COLUMNS", columns)
		out, _, err := cniscope(t, "show", threePods, "--all", "--color", "always")
		harness.Check(t, err)
		out = regexp.MustCompile(`\x1b\[[0-9;]*m`).ReplaceAllString(out, "")
		for line := range strings.Lines(out) {
			if most, _ := strconv.Atoi(columns); len([]rune(strings.TrimSuffix(line, "\n"))) > most {
				t.Errorf("more than %s columns: %q", columns, line)
			}
		}
		return slices.DeleteFunc(strings.Fields(out), func(word string) bool { return strings.ContainsAny(word, "│█▌▐▏…") || word == "0" })
	}
	words("60") // which cuts names
	narrow, wide := words("80"), words("200")
	if !slices.Equal(narrow, wide) {
		t.Errorf("%d words in 80 columns, %d in 200", len(narrow), len(wide))
	}
}

// Reports mark lines with one set of signs, in ASCII for LANG=C, and color them.
func TestSignsOfReports(t *testing.T) {
	t.Setenv("LC_ALL", "C")
	options := remembering(t, threePods)
	for _, c := range []struct{ args, says string }{
		{"doctor --answer-timeout 100ms --color always", "\x1b[31;1mx "},
		{"top --since 1000000h --color always", "\x1b[1mCAUSE "},
		{"top --since 1000000h --color always", "\n  > remove the command sleep"},
	} {
		out, _, _ := cniscope(t, append(strings.Fields(c.args), "--config", options)...)
		harness.Says(t, out, c.says)
		if strings.ContainsAny(out, "✗→·…✓") {
			t.Errorf("%s is not ASCII: %s", c.args, out)
		}
	}
}

// Shells complete the pods that the running cniscope knows.
func TestPodsAreCompleted(t *testing.T) {
	out, _, err := cniscope(t, "__complete", "why", "--config", remembering(t, threePods), "")
	harness.Check(t, err)
	harness.Says(t, out, "shop/broken-0\n", "shop/slow-0\n", "shop/web-0\n")
}

// Each command's help has examples in their own section if it has any, and no line of them elsewhere. It repeats no
// default and lists no values of switches.
func TestHelpIsShort(t *testing.T) {
	for _, cmd := range rootCmd().Commands() {
		harness.Equal(t, strings.Contains(cmd.Long, "\n  cniscope "), false, cmd.Name())
		help, _, err := cniscope(t, cmd.Name(), "--help")
		harness.Check(t, err)
		for _, noise := range []string{"=true|false]", "(default 0s)", "s) (default "} {
			harness.Equal(t, strings.Contains(help, noise), false, cmd.Name(), noise)
		}
	}
}
