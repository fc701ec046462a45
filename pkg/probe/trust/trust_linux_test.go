package trust

import (
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/test/harness"
)

func TestWhoseRightsAreTheirOwn(t *testing.T) {
	const all, none, netAdmin, chown = 1<<41 - 1, 0, 1 << unix.CAP_NET_ADMIN, 1 << unix.CAP_CHOWN
	for name, test := range map[string]struct {
		status procfs.Status
		want   bool
	}{
		"root":                              {procfs.Status{UID: 0, Effective: all, Ambient: none}, true},
		"root with a few capabilities":      {procfs.Status{UID: 0, Effective: netAdmin, Ambient: none}, true},
		"root with others":                  {procfs.Status{UID: 0, Effective: chown, Ambient: none}, false},
		"a user":                            {procfs.Status{UID: 1000, Effective: none, Ambient: none}, false},
		"a user by a set-user-ID program":   {procfs.Status{UID: 1000, Effective: all, Ambient: none}, false},
		"a user by a file's capabilities":   {procfs.Status{UID: 1000, Effective: netAdmin, Ambient: none}, false},
		"a user with an ambient capability": {procfs.Status{UID: 1000, Effective: netAdmin, Ambient: netAdmin}, true},
		"nothing to be read":                {procfs.Status{}, false},
	} {
		harness.Equal(t, Own(test.status) != 0, test.want, name)
	}
}

func TestASetUserIDProgramIsNotBelieved(t *testing.T) {
	harness.Root(t)
	n := NewNode(nil, false)
	for name, test := range map[string]struct {
		args []string
		want event.Caller
	}{
		"root":                  {nil, event.CallerHost},
		"a set-user-ID program": {[]string{"setpriv", "--ruid=65534", "--euid=0", "--clear-groups"}, ""},
		"a user":                {[]string{"setpriv", "--reuid=65534", "--clear-groups"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("env", append(test.args, "cat")...)
			in, err1 := cmd.StdinPipe()
			out, err2 := cmd.StdoutPipe()
			if err1 != nil || err2 != nil || cmd.Start() != nil {
				t.Fatal(err1, err2)
			}
			defer func() { _ = in.Close(); _ = cmd.Wait() }()
			if _, err := in.Write([]byte{'\n'}); err != nil {
				t.Fatal(err)
			}
			if _, err := out.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			harness.Equal(t, n.Caller(uint32(cmd.Process.Pid)), test.want, "believed as")
		})
	}
}
