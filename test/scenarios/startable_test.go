//go:build linux

package scenarios

import (
	"bytes"
	"cmp"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

// A plugin that the kernel or the loader does not start is named with the reason; one that starts
// and fails with the same exit code is not.
func TestAPluginThatCannotStart(t *testing.T) {
	s := set(t, rig.Options{}, "")
	bin := s.rig.CNIBinDir()
	bridge := harness.Must(os.ReadFile(filepath.Join(bin, "bridge")))(t)
	foreign := bytes.Clone(bridge)
	foreign[18], foreign[19] = byte(elf.EM_XTENSA), 0 // e_machine
	sound := harness.Must(os.ReadFile("/bin/true"))(t)
	old := bytes.ReplaceAll(sound, []byte("GLIBC_2.34\x00"), []byte("GLIBC_9.34\x00"))
	unlinked := bytes.ReplaceAll(sound, []byte("libc.so.6\x00"), []byte("libc.so.0\x00"))
	for name, content := range map[string][]byte{
		"foreign": foreign, "unlinked": unlinked, "old": old, "script": []byte("#!/nowhere/python3\n"), "exits127": []byte("#!/bin/sh\nexit 127\n"),
	} {
		harness.Check(t, s.rig.AddPlugin(name, content))
	}
	// On a bridge of its own, which has no address when the port of its failed pod is gone: the next plugin would fail.
	ipam := rig.Bridge(rig.Conf{"bridge": "startable-ipam", "ipam": rig.Conf{"type": "foreign"}})
	for name, test := range map[string]struct {
		chain         []rig.Plugin
		cause, says   string
		remedy, never string
	}{
		"foreign":  {[]rig.Plugin{rig.Bridge(), rig.Test("foreign")}, "missing_plugin", "foreign is built for xtensa, this node is ", "replace " + bin + "/foreign with its build", ""},
		"script":   {[]rig.Plugin{rig.Bridge(), rig.Test("script")}, "missing_plugin", "needs the interpreter /nowhere/python3, which does not exist", "install the package that has /nowhere/python3", ""},
		"unlinked": {[]rig.Plugin{rig.Bridge(), rig.Test("unlinked")}, "missing_plugin", "needs the library libc.so.0", "install the package that has libc.so.0", ""},
		"old":      {[]rig.Plugin{rig.Bridge(), rig.Test("old")}, "missing_plugin", "old needs GLIBC_9.34, which ", "replace " + bin + "/old", ""},
		"first":    {[]rig.Plugin{rig.Test("foreign"), rig.Portmap()}, "missing_plugin", "foreign is built for xtensa", "replace " + bin + "/foreign", ""},
		"fails":    {[]rig.Plugin{rig.Test("exits127"), rig.Portmap()}, "plugin_error", "exits127 exited 127", "", "cannot start"},
		"ipam":     {[]rig.Plugin{ipam}, "missing_plugin", "foreign is built for xtensa", "replace " + bin + "/foreign", ""},
		"exits127": {[]rig.Plugin{rig.Bridge(), rig.Test("exits127")}, "plugin_error", "exits127 exited 127", "", "cannot start"},
	} {
		t.Run(name, func(t *testing.T) {
			s := s.in(t)
			s.prefix = name
			s.network("net-"+name, test.chain...)
			s.looked(cmp.Or(map[string]string{"ipam": "foreign", "first": "foreign", "fails": "exits127"}[name], name))
			call := s.add(rig.PodOptions{}, true)
			verdict, remedy := call.Attrs["cniscope.verdict"], call.Attrs["cniscope.remedy"]
			if call.Attrs["cniscope.cause"] != test.cause || !strings.Contains(verdict, test.says) || !strings.HasPrefix(remedy, test.remedy) ||
				(test.remedy == "") != (remedy == "") || test.never != "" && strings.Contains(verdict, test.never) {
				t.Errorf("%s: %s\n  → %s", call.Attrs["cniscope.cause"], verdict, remedy)
			}
		})
	}
}

// looked waits until cniscope has looked whether a plugin can start: a recording begins with that.
func (s *scene) looked(plugin string) {
	s.Helper()
	harness.Eventually(s, func() error {
		out, err := exec.Command(program, "record", "-", "--for", "1ms", "--config", s.scope.Config()).Output()
		for line := range bytes.Lines(out) {
			if bytes.Contains(line, []byte(`"looked":[`)) && bytes.Contains(line, []byte(strconv.Quote(plugin))) {
				return nil
			}
		}
		return fmt.Errorf("no look at %s yet: %w", plugin, err)
	})
}
