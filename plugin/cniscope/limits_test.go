package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

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
