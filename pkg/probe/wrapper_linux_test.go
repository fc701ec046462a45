package probe

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

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

func init() {
	acts["panic"] = func(after string) error {
		var none *net.IPNet
		if after == "logs" {
			println(strings.Repeat("a long log\n", 2000))
		}
		println(none.IP.String())
		return nil
	}
	acts["ask"] = func(address string) error {
		c, err := net.Dial("udp", address)
		if err != nil {
			return err
		}
		return c.Close()
	}
}

// The last words of a plugin that panics reach its result, also after many lines of a log.
func TestAPluginThatPanics(t *testing.T) {
	for _, before := range []string{"", "logs"} {
		cmd := acting(t, "panic", before)
		cmd.Stdin = strings.NewReader(`{"cniVersion":"1.0.0","name":"pods","type":"panic"}`)
		var out, said strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &said
		o := observe(t, func(*observed) { _ = cmd.Run() })
		results := all[*event.Result](o)
		if len(results) != 1 {
			t.Fatalf("%d results; it said %s", len(results), said.String())
		}
		harness.Says(t, results[0].Stderr, "panic: runtime error: invalid memory address or nil pointer dereference (wrapper_linux_test.go:")
	}
}

// A plugin asks a DNS server over UDP: the address is known, and when it stops waiting.
func TestAPluginThatAsksADNSServer(t *testing.T) {
	for address, network := range map[string]string{"127.0.6.53:53": "udp", "[::1]:53": "udp", "127.0.6.53:5353": ""} {
		o := run(t, acting(t, "ask", address))
		connects, closes := all[*event.Connect](o), all[*event.Close](o)
		if network == "" {
			harness.Equal(t, len(connects), 0, "connections to another port")
			continue
		}
		if len(connects) != 1 || len(closes) != 1 || connects[0].Network != network || connects[0].Address != address {
			t.Errorf("%s: connects %s, closes %s", address, printed(o, connects), printed(o, closes))
		}
	}
}
