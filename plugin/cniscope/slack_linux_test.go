package main

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// tellSlack is the variable by which the test's program calls sayOwnSlack.
const tellSlack = "CNISCOPE_TEST_SLACK"

// All threads of cniscope run may be, Go's monitor thread too, and it begins anew once.
func TestThreadsMayBeWokenLate(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: looks at other threads")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, "run")
	c.Env = append(os.Environ(), tellSlack+"=1")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	threads := strings.Fields(string(out))
	if len(threads) < 2 {
		t.Errorf("%d threads", len(threads))
	}
	for _, slack := range threads {
		if slack != strconv.FormatInt(int64(patient), 10) {
			t.Errorf("a thread may be woken %s ns late", slack)
		}
	}
}

func TestWhoseThreadsMayBeWokenLate(t *testing.T) {
	t.Setenv("NRI_PLUGIN_SOCKET", "")
	for line, want := range map[string]time.Duration{
		"cniscope run --config x": patient, "cniscope connector": punctual, "cniscope": 0, "cniscope ps": 0, "cniscope show run": 0,
	} {
		if got, wanted := slackOf(strings.Fields(line)); got != want || wanted != (want != 0) {
			t.Errorf("%s: %s, %t", line, got, wanted)
		}
	}
	t.Setenv("NRI_PLUGIN_SOCKET", "3")
	if got, _ := slackOf([]string{"10-cniscope"}); got != patient {
		t.Errorf("started by containerd: %s", got)
	}
}

// sayOwnSlack does what cniscope does first, and says how late each of its threads may be woken, in nanoseconds.
func sayOwnSlack() {
	setSlack(os.Args)
	threads, _ := os.ReadDir("/proc/self/task")
	for _, thread := range threads {
		slack, _ := os.ReadFile("/proc/" + thread.Name() + "/timerslack_ns") // nothing where it has ended
		fmt.Println(strings.TrimSpace(string(slack)))
	}
}

func init() {
	if os.Getenv(tellSlack) != "" {
		sayOwnSlack()
		os.Exit(0)
	}
}
