package config

import "testing"

// On any system.
func TestPathsAreThoseOfTheSystem(t *testing.T) {
	for _, test := range []struct {
		on         System
		text, want string // the mistake
	}{
		{Windows, `state.dir = 'D:\cniscope\run'`, ""},
		{Windows, `state.dir = "D:/cniscope/run"`, ""},
		{Windows, `export.file.path = '\\server\share\spans.json'`, ""},
		{Windows, `export.spool.dir = "/var/lib/cniscope"`, "is a path of Linux"},
		{Windows, `state.dir = 'cniscope\run'`, "is not an absolute path"},
		{Windows, `state.dir = 'C:run'`, "is not an absolute path"},
		{Windows, `state.dir = '\\?\C:\run'`, "is the name of a device"},
		{Windows, `state.dir = 'C:\run?'`, "which no file name of Windows has"},
		{Windows, `runtime.socket = '\\.\pipe\k3s'`, ""},
		{Windows, `runtime.socket = "npipe:////./pipe/k3s"`, `write '\\.\pipe\k3s'`},
		{Windows, `runtime.socket = 'C:\containerd.sock'`, "is not the name of a pipe"},
		{Windows, `runtime.socket = "/run/containerd/containerd.sock"`, "is not the name of a pipe"},
		{Windows, `probe.callers = ["C:/k/bin/containerd.exe"]`, ""},
		{Windows, `probe.callers = ["/usr/bin/cri-dockerd"]`, `as "C:/k/bin/containerd.exe"`},
		{Windows, `probe.source = "etw"`, ""},
		{Windows, `probe.source = "bpf"`, `"auto", "etw", "snapshots"`},
		{Windows, `nri.enabled = true`, "is for Linux"},
		{Windows, `nri.enabled = false`, ""},
		{Windows, `control.read_group = "cniscope"`, "is for Linux"},
		{Windows, "metrics.listen = \"127.0.0.1:9471\"\nmetrics.web_config = 'C:\\web.yml'", ""}, // absent here
		{Linux, `state.dir = "/run/x"`, ""},
		{Linux, `state.dir = 'C:\run'`, "is a path of Windows"},
		{Linux, `runtime.socket = '\\.\pipe\x'`, "is a path of Windows"},
		{Linux, `probe.source = "etw"`, `"auto", "bpf", "connector"`},
		{Linux, `control.read_group = "cniscope"`, ""},
	} {
		refused(t, DefaultFor(test.on), test.text, test.want)
	}
}

func TestDefaultsAreRightOnTheirSystem(t *testing.T) {
	for _, on := range []System{Linux, Windows} {
		o, err := over(DefaultFor(on), DefaultFor(on).TOML())
		if err != nil {
			t.Errorf("%s: %v", on, err)
		}
		if changes := o.Changes(DefaultFor(on)); len(changes) != 0 {
			t.Errorf("%s: %v", on, changes)
		}
	}
}
