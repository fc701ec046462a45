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

// What install does is undone by the program that it has installed: the folders and the registry are as they were.
func TestAnInstallationIsTakenBackByItsOwnProgram(t *testing.T) {
	n := newNode(t, onlyAgent)
	n.agent() // wine ends its services when no other program runs
	n.ok("sc", "create", "containerd", "binPath=", `C:\containerd\containerd.exe`)
	n.ok("reg", "add", services+"containerd", "/v", "Environment", "/t", "REG_MULTI_SZ", "/d", "HTTP_PROXY=http://secret@proxy")
	folders, before := n.folders(), n.registry()

	install := []string{"install", "--containerd-tracing", "http://127.0.0.1:4317"}
	said := n.ok(append([]string{`C:\cniscope\cniscope.exe`}, append(install, "--dry-run")...)...)
	if !strings.Contains(said, "+++ service of cniscope") || strings.Contains(said, "secret@proxy") {
		t.Errorf("a dry run says\n%s", said)
	}
	if now := n.folders(); !slices.Equal(now, folders) {
		t.Errorf("a dry run left %q", now)
	}
	n.ok(append([]string{`C:\cniscope\cniscope.exe`}, install...)...)
	if now := n.registry(); !strings.Contains(now, "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4317") || !strings.Contains(now, "secret@proxy") {
		t.Errorf("the services are\n%s", now)
	}
	harness.Eventually(t, func() error { // wine has the first one that asks wait for ever
		if out, err := n.run(`C:\containerd\client.exe`, "-pipe", ownPipe, "-within", "5s", "greet"); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	status := n.ok(program, "status")
	for _, want := range []string{"running", "as installed"} {
		if !strings.Contains(status, want) {
			t.Errorf("the status lacks %q:\n%s", want, status)
		}
	}
	if said := n.ok(program, "ps"); !strings.Contains(said, "no CNI call is under way") {
		t.Errorf("ps says\n%s", said)
	}
	for _, line := range strings.Split(n.ok(`C:\cniscope\cniscope.exe`, "install"), "\n") {
		if strings.HasPrefix(line, "new ") || strings.HasPrefix(line, "changed ") {
			t.Errorf("the second time: %s", line)
		}
	}

	data, err := os.ReadFile(n.path("cniscope/cniscope.exe"))
	harness.Check(t, err)
	harness.Check(t, os.WriteFile(n.path("cniscope/newer.exe"), append(data, "newer"...), 0o755))
	if said := n.ok(`C:\cniscope\newer.exe`, "install"); !strings.Contains(said, "changed   "+program) {
		t.Errorf("an upgrade says\n%s", said)
	}

	t.Log(n.ok(program, "uninstall"))
	left := slices.DeleteFunc(n.folders(), func(file string) bool { return slices.Contains(folders, file) })
	// Windows deletes no program that runs, but when it starts.
	if len(left) != 1 || !strings.HasPrefix(left[0], "Program Files/cniscope.exe.removed-") {
		t.Errorf("left: %q", left)
	}
	if now := n.registry(); now != before {
		t.Errorf("the services were\n%s\nand are\n%s", before, now)
	}
}

// ok runs a program, and returns what it wrote.
func (n *node) ok(args ...string) string {
	n.t.Helper()
	out, err := n.run(args...)
	if err != nil {
		n.t.Fatalf("%s: %v: %s", strings.Join(args, " "), err, out)
	}
	return out
}

// folders lists what there is where programs and their data are.
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

// registry is what it has of the services that an installation touches, and of cniscope's source of events.
func (n *node) registry() string {
	var all strings.Builder
	for _, key := range []string{"cniscope", "containerd", `EventLog\Application\cniscope`} {
		out, _ := n.run("reg", "query", services+key, "/s") // it fails where there is none
		all.WriteString(out)
	}
	return all.String()
}
