package doctor

import (
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/event"
)

// onWindows is a healthy node with a change.
func onWindows(change func(*fact.Facts)) *fact.Facts {
	f := &fact.Facts{OnWindows: true}
	f.Folder.Value.Networks = []event.Network{{Name: "antrea", Plugins: []event.Plugin{{Type: "antrea"}}}}
	f.HNS.Value, f.Pipes.Value = "running", []string{"containerd-containerd", "c:varrunantreacni.sock"}
	f.Trial.Value = fact.Trial{Source: "etw", Took: 20 * time.Millisecond}
	change(f)
	return f
}

func TestChecksOfWindows(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*fact.Facts)
		check  string
		want   string // the summary; empty if healthy
	}{
		{"all is well", func(*fact.Facts) {}, "", ""},
		{"no containers", func(f *fact.Facts) { f.HNS.Value = "" }, "hns", "there is no Host Network Service"},
		{"stopped", func(f *fact.Facts) { f.HNS.Value = "not running" }, "hns", "does not run"},
		{"no agent", func(f *fact.Facts) { f.Pipes.Value = nil }, "agent-pipe", "plugin antrea of network \"antrea\" asks has no pipe"},
		{"another CNI", func(f *fact.Facts) { f.Folder.Value.Networks, f.Pipes.Value = nil, nil }, "", ""},
		{"late", func(f *fact.Facts) { f.Trial.Value.Took = time.Second }, "self-test", "processes are reported late"},
		{"unread", func(f *fact.Facts) { f.Trial.Value.Unread = "Access is denied." }, "self-test", "cannot be read"},
		{"no event tracing", func(f *fact.Facts) { f.Trial.Value.Why = "Access is denied." }, "self-test", "Windows refuses event tracing"},
	} {
		found := ""
		for _, f := range Judge(onWindows(test.change)).Findings {
			switch f.Check {
			case "hns", "agent-pipe", "self-test":
				if f.Level != Note {
					found += f.Check + ": " + f.Summary + "\n"
				}
			}
		}
		if test.want == "" && found != "" || !strings.Contains(found, test.want) || !strings.HasPrefix(found, test.check) {
			t.Errorf("%s: %q, want %s: %q", test.name, found, test.check, test.want)
		}
	}
}

func TestAReportOfWindowsHasNoCheckOfLinux(t *testing.T) {
	for _, o := range Judge(onWindows(func(*fact.Facts) {})).Checks {
		if o.Name == "kernel" || o.Name == "service-rules" {
			t.Errorf("it has %s", o.Name)
		}
	}
	for _, o := range Judge(&fact.Facts{}).Checks {
		if o.Name == "hns" || o.Name == "self-test" {
			t.Errorf("one of Linux has %s", o.Name)
		}
	}
}
