package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/show"
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

// What a CI sees: an exit code, and on standard error which call crossed what.
func TestLimitsGate(t *testing.T) {
	spool := spooled(t, threePods)
	cut := filepath.Join(t.TempDir(), "cut.rec")
	whole := harness.Must(os.ReadFile(threePods))(t)
	harness.Check(t, os.WriteFile(cut, whole[:len(whole)/3], 0o600))
	check(t, []commandLine{
		{"show " + threePods + " --max-call 5s --max-commands 40 --max-command 5s --max-failed 1", 0, "12 calls, all within the limits"},
		{"show " + threePods + " --max-call 500ms", 1, "shop/slow-0  CNI ADD eth0 took 2.22s, more than 500ms; 2.1s of 2.22s: plugin policy ran policyctl, which ran sleep (--max-call)"},
		{"show " + threePods + " --max-commands 31", 1, "shop/web-0  CNI ADD eth0 ran 32 commands, more than 31: iptables 32 times (--max-commands)"},
		{"show " + threePods + " --max-command 915ms", 1, "shop/slow-0  CNI ADD eth0 ran policyctl for 2.1s, more than 915ms (--max-command)"},
		{"show " + threePods + " --max-failed 0", 1, "shop/broken-0  CNI ADD eth0 failed: plugin policy failed (code 11)"},
		{"show " + threePods + " --max-call 500ms --pod shop/web-0", 0, "4 calls, all within the limits"},
		{"show " + threePods + " --max-call 500ms --pod shop/other", 2, "there is no call to compare"},
		{"show --last 1000h --spool " + spool + " --max-call 500ms", 1, "took 2.22s"},
		{"show --last 1000h --spool " + spool + " --max-call 5s", 0, "12 calls, all within the limits"},
		{"show --last 1m --spool " + spool + " --max-call 5s", 2, "there is no call to compare"},
		{"show --last 1h --spool " + spool + "/none --max-call 500ms", 2, "no spool there"},
		{"show " + cut + " --max-call 1m", 2, "could not be compared with all calls"},
		{"show " + cut + " --max-commands 0", 1, "--max-commands"},
		{"show /nonexistent.rec --max-call 1s", 2, "no such file"},
		{"show " + threePods + " --max-call 0", 2, "want a duration"},
		{"show " + threePods + " --max-commands many", 2, "want a number"},
		{"show /nonexistent.rec", 1, "no such file"},
	})
}

// What crosses a limit is a problem, whatever the options' thresholds say.
func TestLimitsChooseWhatIsDrawn(t *testing.T) {
	out, _, err := cniscope(t, "show", threePods, "--problems", "--max-commands", "31")
	if err == nil || !strings.Contains(out, "shop/web-0  CNI ADD eth0  132.2ms") || !strings.Contains(out, "shop/slow-0") || strings.Contains(out, "shop/web-0  CNI DEL eth0  195.7ms") {
		t.Errorf("%v\n%s", err, out)
	}
	out, _, err = cniscope(t, "show", threePods, "--problems", "--pod", "shop/web-0", "--max-commands", "40")
	if err != nil || out != "" {
		t.Errorf("%v\n%s", err, out)
	}
}

// The page and the numbers are those of the same calls, from a file or from the spool.
func TestAPageOfTheSpool(t *testing.T) {
	page, _, err := cniscope(t, "show", "--html", "--last", "1000h", "--spool", spooled(t, threePods))
	if err != nil || !strings.Contains(page, "12 calls of 3 pods: 1 failed, 1 slow") || !strings.HasSuffix(page, "</html>\n") {
		t.Errorf("%v, %d bytes", err, len(page))
	}
	only, _, err := cniscope(t, "show", "--html", "--pod", "shop/web-0", threePods)
	if err != nil || !strings.Contains(only, "Nothing was slow, and nothing failed") || strings.Contains(only, "slow-0") {
		t.Errorf("%v, %d bytes", err, len(only))
	}
}

// Where there is nothing to show it is said why, and what there is instead; who reads a document or a
// page gets one.
func TestWhereThereIsNothingToShow(t *testing.T) {
	recording := harness.Must(os.ReadFile(threePods))(t)
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		harness.Check(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	header, _, _ := strings.Cut(string(recording), "\n")
	empty, none := file("empty.rec", ""), file("header.rec", header+"\n")
	half, other := file("half.rec", string(recording[:len(recording)/2])), file("other.rec", "hello\n")
	const pods = "no call of pod nobody in this recording; it has calls of shop/web-0, shop/slow-0, shop/broken-0"
	for args, want := range map[string]struct {
		code      int
		says, out string
	}{
		threePods + " --pod nobody":               {1, pods, ""},
		threePods + " --pod nobody --html":        {1, pods, ""},
		threePods + " --pod nobody --max-call 1s": {2, pods, ""},
		threePods + " --pod web-0 --problems":     {0, "nothing of pod web-0 was slow, failed or partly unseen in this recording", ""},
		none:                                      {0, "there is no CNI call in this recording", ""},
		none + " --summary":                       {0, "there is no CNI call in this recording", ""},
		none + " --summary --format json":         {0, "there is no CNI call in this recording", `"calls": 0`},
		none + " --html":                          {0, "there is no CNI call in this recording", "No CNI call was recorded"},
		none + " --max-call 1s":                   {2, "there is no call to compare with the limits", ""},
		empty:                                     {1, "it is empty; make a recording with `cniscope record FILE`", ""},
		other:                                     {1, "it does not begin with a recording's header", ""},
		half:                                      {3, "the recording ends within a line (its writer was killed, or the copy is incomplete); only complete lines were read\n", "6 calls of 2 pods"},
		filepath.Join(dir, "nowhere"):             {1, "no such file", ""},
		threePods + " --html --pod web-0":         {0, "", "CNI DEL"},
		threePods + " --html --pod web-0 --problems": {0, "", "Nothing was slow"},
	} {
		out, diagnostics, err := cniscope(t, append([]string{"show"}, strings.Fields(args)...)...)
		said := diagnostics
		code := 0
		if err != nil {
			code, said = exitCode(err), said+err.Error()
		}
		if code != want.code || !strings.Contains(said, want.says) || !strings.Contains(out, want.out) || want.out == "" && out != "" {
			t.Errorf("%s: %d, %q, %d bytes; want %d, %q, %q", args, code, said, len(out), want.code, want.says, want.out)
		}
	}
}

// A recording does not differ from itself.
func TestDiffOfTheSame(t *testing.T) {
	out, _, err := cniscope(t, "diff", threePods, threePods)
	if err != nil || strings.Count(out, "no significant change") != 4 || strings.Count(out, "\n") != 4 {
		t.Errorf("%v\n%s", err, out)
	}
}

// One pod is not enough to tell what is slower, however it looks; what is new is new.
func TestDiffOfTwoPods(t *testing.T) {
	read := func(args ...string) (c show.Comparison) {
		t.Helper()
		out, _, err := cniscope(t, append([]string{"diff", "--format", "json"}, args...)...)
		harness.Check(t, err)
		harness.Check(t, json.Unmarshal([]byte(out), &c))
		return c
	}
	whole := read(threePods, threePods)
	if len(whole.Kinds) != 4 || whole.Kinds[0].Name != "CNI ADD eth0" || whole.Kinds[0].A.Calls != 3 {
		t.Errorf("%+v", whole)
	}
	one := read(threePods, threePods, "--pod", "slow-0")
	if one.Kinds[0].A.Calls != 1 || one.Kinds[0].Word != show.Same {
		t.Errorf("%+v", one.Kinds[0])
	}
}
