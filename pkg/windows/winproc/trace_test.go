package winproc

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/windows/etw"
	"github.com/cniscope/cniscope/pkg/windows/etw/etl"
	"github.com/cniscope/cniscope/test/etwtest"
	"github.com/cniscope/cniscope/test/harness"
)

func readTrace(t *testing.T, file []byte) *Trace {
	t.Helper()
	r := harness.Must(etl.NewReader(bytes.NewReader(file)))(t)
	tr := &Trace{Began: r.Header().Began, Wall: r.Header().Start.UnixNano(), Agents: []string{"antrea-agent"}}
	for rec := (etw.Record{}); ; {
		if err := r.Next(&rec); errors.Is(err, io.EOF) {
			return tr
		} else if err != nil {
			t.Fatal(err)
		}
		harness.Check(t, tr.Take(&rec))
	}
}

// stories tell a node's trace in a line for each process event, at ms after the trace's start.
func stories(t *testing.T, n *etwtest.Node) (all []string) {
	t.Helper()
	tr := readTrace(t, n.Bytes())
	names := map[event.Process]string{}
	harness.Check(t, tr.Events(func(e event.Event) {
		at := (e.Time - tr.Began) / 1e6
		switch b := e.Body.(type) {
		case *event.Exec:
			names[b.Process] = fmt.Sprint(b.Name, b.PID)
			said := fmt.Sprintf("%d %s", at, names[b.Process])
			if up := names[b.Parent]; up != "" {
				said += " by " + up
			}
			if b.Call != nil {
				said += fmt.Sprintf(" %s of %s in %s", b.Call.Command, b.Call.Pod.Name, b.Call.ContainerID)
			}
			if b.Mentions != nil {
				said += fmt.Sprintf(" for %q", b.Mentions)
			}
			all = append(all, said)
		case *event.Agent:
			names[b.Process] = b.Name
		case *event.Exit:
			all = append(all, fmt.Sprintf("%d %s exits %d", at, names[b.Process], b.Code))
		}
	}))
	return all
}

const (
	antreaFile = `\opt\cni\bin\antrea.exe`
	shellFile  = `\Windows\System32\WindowsPowerShell\v1.0\powershell.exe`
	web, db    = "5b1f8e6f2f3f4a0c9d5a7f10c0ffee00", "e36af093c59191cbb1d34875fb0a27cb"
)

// hashOf is how antrea names a container's interface.
func hashOf(container string) string {
	hash := sha1.Sum([]byte(container))
	return hex.EncodeToString(hash[:])[:6]
}

func node() *etwtest.Node {
	n := &etwtest.Node{}
	n.Present(1000, 600, `\containerd.exe`, `containerd.exe --run-service`)
	n.Present(1200, 600, `\antrea-agent.exe`, `antrea-agent.exe --config x`)
	return n
}

func run(n *etwtest.Node, from, to int64, pid, parent uint32, file, line string) {
	n.Began(from, pid, parent, file, line)
	n.Ended(to, pid, 0)
}

func TestWhatATraceTells(t *testing.T) {
	const of = `powershell Get-NetAdapter "vEthernet (%s)"`
	begins := func(pod string) string {
		return "RunPodSandbox for &PodSandboxMetadata{Name:" + pod + ",Uid:u1,Namespace:shop,Attempt:0,}"
	}
	for name, test := range map[string]struct {
		tell func(*etwtest.Node)
		want string
	}{
		"plugins, their delegates and commands; not the shim, the console, or a program of another": {
			func(n *etwtest.Node) {
				run(n, 10, 20, 1900, 1000, `\containerd-shim-runhcs-v1.exe`, `containerd-shim-runhcs-v1.exe -id x start`)
				run(n, 100, 500, 2000, 1000, antreaFile, `C:\opt\cni\bin\antrea.exe`)
				run(n, 110, 120, 2004, 2000, `\opt\cni\bin\host-local.exe`, `C:\opt\cni\bin\host-local.exe`)
				run(n, 130, 400, 2008, 2000, shellFile, `powershell.exe Get-NetAdapter`)
				run(n, 131, 400, 2010, 2008, `\Windows\System32\conhost.exe`, `conhost.exe 0x4`)
				run(n, 140, 150, 2012, 700, `\opt\cni\bin\antrea.exe`, `C:\opt\cni\bin\antrea.exe`)
			},
			"100 antrea2000  of  in ; 110 host-local2004 by antrea2000  of  in ; 120 host-local2004 exits 0; " +
				"130 powershell2008 by antrea2000; 400 powershell2008 exits 0; 500 antrea2000 exits 0",
		},
		"an interface that only one call can have": {
			func(n *etwtest.Node) {
				run(n, 100, 900, 2000, 1000, antreaFile, `C:\opt\cni\bin\antrea.exe`)
				run(n, 200, 300, 2004, 1200, shellFile, fmt.Sprintf(of, "db-1-a1b2c3"))
				run(n, 400, 500, 2008, 1200, shellFile, "powershell -NoExit -Command -")
			},
			`100 antrea2000  of db-1 in ; 200 powershell2004 by antrea-agent for [""]; 300 powershell2004 exits 0; ` +
				"400 powershell2008 by antrea-agent; 500 powershell2008 exits 0; 900 antrea2000 exits 0",
		},
		"an interface of one of two calls": {
			func(n *etwtest.Node) {
				run(n, 100, 900, 2000, 1000, antreaFile, `C:\opt\cni\bin\antrea.exe`)
				run(n, 150, 900, 2002, 1000, antreaFile, `C:\opt\cni\bin\antrea.exe`)
				run(n, 200, 300, 2004, 1200, shellFile, fmt.Sprintf(of, "db-1-a1b2c3"))
			},
			"100 antrea2000  of  in ; 150 antrea2002  of  in ; 200 powershell2004 by antrea-agent; " +
				"300 powershell2004 exits 0; 900 antrea2000 exits 0; 900 antrea2002 exits 0",
		},
		"an interface of a call that outlasts another": {
			func(n *etwtest.Node) {
				n.Began(100, 2000, 1000, antreaFile, `C:\opt\cni\bin\antrea.exe`)
				run(n, 200, 300, 2002, 1000, antreaFile, `C:\opt\cni\bin\antrea.exe`)
				run(n, 100_000, 100_001, 2004, 1200, shellFile, fmt.Sprintf(of, "db-1-a1b2c3"))
			},
			`100 antrea2000  of db-1 in ; 200 antrea2002  of  in ; 300 antrea2002 exits 0; ` +
				`100000 powershell2004 by antrea-agent for [""]; 100001 powershell2004 exits 0`,
		},
		"an interface that may be of an earlier call": {
			func(n *etwtest.Node) {
				run(n, 100, 200, 2000, 1000, antreaFile, `C:\opt\cni\bin\antrea.exe`)
				run(n, 5000, 9000, 2002, 1000, antreaFile, `C:\opt\cni\bin\antrea.exe`)
				run(n, 6000, 7000, 2004, 1200, shellFile, fmt.Sprintf(of, "db-1-a1b2c3"))
			},
			"100 antrea2000  of  in ; 200 antrea2000 exits 0; 5000 antrea2002  of  in ; 6000 powershell2004 by antrea-agent; " +
				"7000 powershell2004 exits 0; 9000 antrea2002 exits 0",
		},
		"two interfaces of one call": {
			func(n *etwtest.Node) {
				run(n, 100, 900, 2000, 1000, antreaFile, `C:\opt\cni\bin\antrea.exe`)
				run(n, 200, 300, 2004, 1200, shellFile, fmt.Sprintf(of, "db-1-a1b2c3"))
				run(n, 400, 500, 2008, 1200, shellFile, fmt.Sprintf(of, "db-2-d1e2f3"))
			},
			"100 antrea2000  of  in ; 200 powershell2004 by antrea-agent; 300 powershell2004 exits 0; " +
				"400 powershell2008 by antrea-agent; 500 powershell2008 exits 0; 900 antrea2000 exits 0",
		},
		"containerd's log": {
			func(n *etwtest.Node) {
				n.Log(90, begins("web-0"), "")
				run(n, 100, 900, 2000, 1000, antreaFile, `C:\opt\cni\bin\antrea.exe`)
				run(n, 200, 300, 2004, 1200, shellFile, fmt.Sprintf(of, "web-0-"+hashOf(web)))
				run(n, 400, 500, 2008, 1200, shellFile, fmt.Sprintf(of, "web-0-123456"))
				n.Log(1000, begins("web-0")+` returns sandbox id "`+web+`"`, "")
				n.Log(2000, `StopPodSandbox for "`+web+`"`, "")
				run(n, 2100, 2200, 2012, 1000, antreaFile, `C:\opt\cni\bin\antrea.exe`)
				n.Log(2300, `StopPodSandbox for "`+web+`" returns successfully`, "")
			},
			"100 antrea2000 ADD of web-0 in " + web + `; 200 powershell2004 by antrea-agent for ["` + web + `"]; ` +
				"300 powershell2004 exits 0; 400 powershell2008 by antrea-agent; 500 powershell2008 exits 0; " +
				"900 antrea2000 exits 0; 2100 antrea2012 DEL of web-0 in " + web + "; 2200 antrea2012 exits 0",
		},
		"a failed sandbox's network is removed": {
			func(n *etwtest.Node) {
				n.Log(90, begins("db"), "")
				n.Began(100, 2000, 1000, antreaFile, `C:\opt\cni\bin\antrea.exe`)
				n.Ended(200, 2000, 1)
				run(n, 210, 220, 2004, 1000, antreaFile, `C:\opt\cni\bin\antrea.exe`)
				n.Log(300, begins("db")+" failed, error", `failed to setup network for sandbox "`+db+`": plugin type="antrea"`)
			},
			"100 antrea2000 ADD of db in " + db + "; 200 antrea2000 exits 1; 210 antrea2004 DEL of db in " + db + "; 220 antrea2004 exits 0",
		},
		"two requests at once": {
			func(n *etwtest.Node) {
				n.Log(90, begins("db"), "")
				n.Log(95, begins("web-0"), "")
				run(n, 100, 200, 2000, 1000, antreaFile, `C:\opt\cni\bin\antrea.exe`)
				n.Log(300, begins("web-0")+` returns sandbox id "`+web+`"`, "")
				n.Log(300, begins("db")+` returns sandbox id "`+db+`"`, "")
			},
			"100 antrea2000  of  in ; 200 antrea2000 exits 0",
		},
		"a PID that is used again": {
			func(n *etwtest.Node) {
				run(n, 100, 200, 2000, 1000, antreaFile, `C:\opt\cni\bin\antrea.exe`)
				run(n, 300, 900, 2000, 700, shellFile, "powershell a")
				run(n, 400, 500, 2004, 2000, shellFile, "powershell b")
			},
			"100 antrea2000  of  in ; 200 antrea2000 exits 0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := node()
			test.tell(n)
			harness.Equal(t, strings.Join(stories(t, n), "; "), test.want, "the story")
		})
	}
}

func TestATraceWithoutCalls(t *testing.T) {
	none := func(event.Event) {}
	n := node()
	err := readTrace(t, n.Bytes()).Events(none)
	harness.Says(t, fmt.Sprint(err), "containerd.exe ran no plugin in it; it has 2 processes, of which 0 started")
	err = readTrace(t, (&etwtest.Node{}).Bytes()).Events(none)
	harness.Says(t, fmt.Sprint(err), "the trace has no records of processes")
}

// Defunct processes exited before the trace.
func TestTheTreeIsAsMicrosoftDecodesIt(t *testing.T) {
	const recordings = "../../../../shared/etl/perfview-net.4.5.2.x64"
	baseline, err := os.ReadFile(recordings + ".baseline.txt")
	if err != nil {
		t.Skip("the recordings are not in the repository")
	}
	tr := readTrace(t, etwtest.Unpacked(t, recordings+".etl.zip"))
	tr.join()
	tr.resolve()
	compared := 0
	event := regexp.MustCompile(`(?m)^EVENT ([0-9,.]+): (?:Windows Kernel/Process/|Microsoft-Windows-Kernel-Process/Process)(Start|Stop|DCStart|DCStop|Rundown)\S* (PID=.*)$`)
	for _, m := range event.FindAllStringSubmatch(string(baseline), -1) {
		field := func(name string) string {
			_, after, _ := strings.Cut(m[3], " "+name+"=")
			value, _, _ := strings.Cut(after, ";")
			return value
		}
		us := harness.Must(strconv.ParseInt(strings.NewReplacer(",", "", ".", "").Replace(m[1]), 10, 64))(t)
		pid := harness.Must(strconv.ParseUint(strings.ReplaceAll(field("ProcessID"), ",", ""), 10, 32))(t)
		i := slices.IndexFunc(tr.lives, func(l *lived) bool { return l.PID == uint32(pid) && (l.ended == 0 || l.ended >= tr.Began+us*1000-1000) })
		if i < 0 {
			t.Fatalf("no process %s", m[0])
		}
		l := tr.lives[i]
		near := func(ns int64) bool { return max(ns-tr.Began-us*1000, us*1000+tr.Began-ns) < 20_000 }
		if line := strings.TrimSuffix(field("CommandLine"), "..."); !strings.HasPrefix(l.CommandLine, line) {
			t.Errorf("%q: %s", l.CommandLine, m[0])
		}
		if name := field("ImageFileName"); name != "" && !strings.EqualFold(path.Base(l.file), path.Base(program(name))) {
			t.Errorf("%q: %s", l.file, m[0])
		}
		if up := field("ParentID"); up != "" && m[2] != "Stop" && strings.ReplaceAll(up, ",", "") != fmt.Sprint(l.Parent) {
			t.Errorf("parent %d: %s", l.Parent, m[0])
		}
		if m[2] == "Start" && (l.present || !near(l.Time)) || m[2] == "Stop" && (!near(l.ended) || field("ExitStatus") != "" && field("ExitStatus") != fmt.Sprint(l.code)) {
			t.Errorf("%d to %d, exit %d: %s", l.Time-tr.Began, l.ended-tr.Began, l.code, m[0])
		}
		compared++
	}
	if compared < 10 {
		t.Errorf("%d events were compared", compared)
	}
}
