//go:build linux

package windows

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

const (
	program  = `C:\Program Files\cniscope\cniscope.exe`
	ownPipe  = `\\.\pipe\cniscope.c:programdata:cniscope:run`
	services = `HKLM\SYSTEM\CurrentControlSet\Services\`
)

// The commands of docs/windows.md install and remove a working service: directories and registry are as before.
func TestTheDocumentedCommandsInstallAndRemoveTheService(t *testing.T) {
	n := newNode(t, onlyAgent)
	n.agent() // wine ends its services when no other program runs
	folders, before := n.folders(), n.registry()

	n.batch("install", documented(t, "Install it"))
	harness.Says(t, n.registry(), `"C:\Program Files\cniscope\cniscope.exe" run`)
	harness.Eventually(t, func() error { // wine blocks the first connection for ever
		if out, err := n.run(`C:\containerd\client.exe`, "-pipe", ownPipe, "-within", "5s", "greet"); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	harness.Says(t, n.ok(program, "status"), "cniscope is running")
	harness.Says(t, n.ok(program, "ps"), "no CNI call is in progress")

	n.batch("remove", documented(t, "Remove it"))
	harness.Eventually(t, func() error { // a running program cannot be deleted
		if _, err := n.run(`cmd`, "/c", `C:\cniscope\folders.bat`); err != nil {
			return err
		}
		if left := n.folders(); !slices.Equal(left, folders) {
			return fmt.Errorf("there is %q", left)
		}
		return nil
	})
	harness.Equal(t, n.registry(), before, "the services were")
}

func documented(t *testing.T, heading string) (commands []string) {
	t.Helper()
	text := harness.Must(os.ReadFile("../../docs/windows.md"))(t)
	_, section, found := strings.Cut(string(text), "\n## "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for line := range strings.Lines(section) {
		if command, is := strings.CutPrefix(line, "    "); is {
			commands = append(commands, strings.TrimSpace(command))
		}
	}
	if !found || len(commands) == 0 {
		t.Fatalf("docs/windows.md has no commands below %q", heading)
	}
	return commands
}

// batch runs commands with cmd.exe up to the first failure. Commands that remove directories go to folders.bat.
func (n *node) batch(name string, commands []string) {
	n.t.Helper()
	var now, later strings.Builder
	for _, c := range commands {
		to := &now
		if strings.HasPrefix(c, "rd ") {
			to = &later
		}
		fmt.Fprintf(to, "%s\r\nif errorlevel 1 exit /b 1\r\n", c)
	}
	n.write("cniscope/"+name+".bat", "cd /d C:\\cniscope\r\n"+now.String())
	n.write("cniscope/folders.bat", later.String())
	n.t.Log(n.ok("cmd", "/c", `C:\cniscope\`+name+".bat"))
}

func (n *node) ok(args ...string) string {
	n.t.Helper()
	out, err := n.run(args...)
	if err != nil {
		n.t.Fatalf("%s: %v: %s", strings.Join(args, " "), err, out)
	}
	return out
}

func (n *node) folders() (all []string) {
	n.t.Helper()
	for _, dir := range []string{"Program Files", "ProgramData"} {
		harness.Check(n.t, filepath.WalkDir(n.path(dir), func(path string, _ os.DirEntry, err error) error {
			all = append(all, strings.TrimPrefix(path, n.path("")+"/"))
			return err
		}))
	}
	return all
}

func (n *node) registry() string {
	var all strings.Builder
	for _, key := range []string{"cniscope", `EventLog\Application\cniscope`} {
		out, _ := n.run("reg", "query", services+key, "/s") // fails if the key does not exist
		all.WriteString(out)
	}
	return all.String()
}
