package probe

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

var writers = map[string]func(string) error{
	"writev": func(answer string) error { return answers(answer, 6) },
	"write":  func(answer string) error { return answers(answer, 1) },
}

func answers(file string, places int) error {
	answer, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var from [][]byte
	for i := range places {
		from = append(from, answer[len(answer)*i/places:len(answer)*(i+1)/places])
	}
	if places == 1 {
		_, err = unix.Write(1, answer)
	} else {
		_, err = unix.Writev(1, from)
	}
	return err
}

func TestAnAnswerThatIsNotSeenWhole(t *testing.T) {
	for _, test := range []struct {
		act   string
		size  int
		whole bool
	}{
		{"write", 5 << 10, true}, {"write", 20 << 10, true}, {"write", 40 << 10, false}, {"writev", 2 << 10, false}, {"writev", 5 << 10, false},
	} {
		t.Run(fmt.Sprint(test.act, " ", test.size), func(t *testing.T) {
			file := t.TempDir() + "/answer"
			answer := `{"cniVersion":"1.0.0","ips":[{"address":"10.1.2.3/24"}],"dns":{"domain":"` + strings.Repeat("x", test.size) + `"}}`
			harness.Check(t, os.WriteFile(file, []byte(answer), 0o600))
			cmd := acting(t, test.act, file)
			cmd.Stdin = strings.NewReader(`{"cniVersion":"1.0.0","name":"pods","type":"write"}`)
			var out strings.Builder
			cmd.Stdout = &out
			o := run(t, cmd)
			results, cuts := all[*event.Result](o), all[*event.Cut](o)
			harness.Equal(t, out.String(), answer, "it wrote", out.Len(), len(answer), "bytes")
			if test.whole && (len(results) != 1 || len(results[0].IPs) != 1 || results[0].Invalid != "") {
				t.Errorf("results: %s", printed(o, results))
			}
			if !test.whole && (len(results) != 0 || len(cuts) == 0) {
				t.Errorf("%d parts are missing, results: %s; programs: %s; %+v", len(cuts), printed(o, results), printed(o, o.execs()), o.stats)
			}
		})
	}
}
