package probe

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

// The plugin `answer` reads its input and writes the file ARGUMENT.
func TestWhatAScriptIsToldAndAnswers(t *testing.T) {
	const (
		outer = `{"cniVersion":"1.0.0","name":"pods","type":"wrapped","token":"canary-of-the-wrapper"}`
		inner = `{"cniVersion":"1.0.0","name":"pods","type":"answer","token":"canary-of-the-plugin"}`
		ok    = `{"cniVersion":"1.0.0","ips":[{"address":"10.1.2.3/24"}]}`
		bad   = `{"cniVersion":"1.0.0","code":7,"msg":"canary-of-the-wrapper and canary-of-the-plugin"}`
	)
	here := "<<EOF\n" + inner + "\nEOF\n"
	for name, test := range map[string]struct {
		script, answer string
		told           []string // the types of the configurations
		want           event.Result
		runs           int
	}{
		"execs it with a here-document": {"read -r conf; exec $CNI_BIN/answer " + here, ok, []string{"wrapped", "answer"}, event.Result{IPs: []string{"10.1.2.3/24"}}, 1},
		"that fails, with what both were told": {
			"read -r conf; exec $CNI_BIN/answer " + here, bad,
			[]string{"wrapped", "answer"},
			event.Result{Code: 7, Message: "‹base64 21› and ‹base64 20›"},
			1,
		},
		"execs it with its own input":            {"exec $CNI_BIN/answer", ok, []string{"wrapped"}, event.Result{IPs: []string{"10.1.2.3/24"}}, 1},
		"and with nothing":                       {"read -r conf; exec $CNI_BIN/answer </dev/null", ok, []string{"wrapped"}, event.Result{IPs: []string{"10.1.2.3/24"}}, 1},
		"execs twice":                            {"read -r conf; exec sh -c 'exec $CNI_BIN/answer' " + here, ok, []string{"wrapped", "answer"}, event.Result{IPs: []string{"10.1.2.3/24"}}, 1},
		"calls it as a delegate":                 {"read -r conf; out=$($CNI_BIN/answer " + here + "); printf %s \"$out\"", ok, []string{"wrapped", "answer"}, event.Result{IPs: []string{"10.1.2.3/24"}}, 2},
		"is a script with helpers in pipelines":  {"conf=$(cat); type=$(printf %s \"$conf\" | sed s/a/b/ | cat); read -r answer <$ARGUMENT; printf %s \"$answer\"", ok, []string{"wrapped"}, event.Result{IPs: []string{"10.1.2.3/24"}}, 1},
		"is a script whose answer is a helper's": {"conf=$(cat); read -r answer <$ARGUMENT; printf %s \"$answer\" | sed s/10.1/10.9/", ok, []string{"wrapped"}, event.Result{IPs: []string{"10.9.2.3/24"}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := plugin(t, "wrapped", test.script)
			self := harness.Must(os.Executable())(t)
			harness.Check(t, os.Symlink(self, filepath.Join(filepath.Dir(cmd.Path), "answer")))
			cmd.Env = append(cmd.Env, "ARGUMENT="+answerFile(t, test.answer), "CNI_BIN="+filepath.Dir(cmd.Path))
			cmd.Stdin, cmd.Stderr = strings.NewReader(outer+"\n"), os.Stderr
			var out strings.Builder
			cmd.Stdout = &out
			o := run(t, cmd)
			var told []string
			for _, c := range all[*event.Configuration](o) {
				told = append(told, c.Type)
			}
			harness.EqualSlices(t, told, test.told, "told")
			execs := o.execs()
			root := slices.IndexFunc(execs, func(x *event.Exec) bool { return x.Root })
			if root < 0 {
				t.Fatalf("no plugin among %s", printed(o, execs))
			}
			var answer *event.Result // of the runtime's plugin
			runs := map[event.Process]bool{}
			for _, r := range all[*event.Result](o) {
				runs[r.Process] = true
				if r.Process == execs[root].Process {
					answer = r
				}
			}
			if answer == nil || len(runs) != test.runs {
				t.Fatalf("%d runs answered, want %d, the first one among them; programs: %s; answers: %s; %+v",
					len(runs), test.runs, printed(o, execs), printed(o, all[*event.Result](o)), o.stats)
			}
			if !slices.Equal(answer.IPs, test.want.IPs) || answer.Code != test.want.Code || answer.Message != test.want.Message || answer.Invalid != "" {
				t.Errorf("%+v, want %+v; the runtime was told %s", answer, test.want, out.String())
			}
		})
	}
}
