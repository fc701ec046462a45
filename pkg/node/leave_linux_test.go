package node

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

// A node's first process, and a pod: a mount namespace of its own, in which two folders of the node lie on
// a file system of the pod's.
const firstProcess = `unshare --mount sh -c "$0" sh "$@"; exit $?`

const pod = `set -e
mount --make-rprivate /
mount --bind "$1" "$3"
mount -t tmpfs tmpfs "$1"
for dir in empty used; do
	mkdir "$1/$dir"
	mount --bind "$3/$dir" "$1/$dir"
done
mkdir "$1/own"
exec "$2" -test.run '^TestFoldersOfTheNodeGoWithThePod$'`

func TestFoldersOfTheNodeGoWithThePod(t *testing.T) {
	if dir := os.Getenv("CNISCOPE_TEST_LEAVE"); dir != "" {
		leaveNode(filepath.Join(dir, "empty"), filepath.Join(dir, "used"), filepath.Join(dir, "own"), filepath.Join(dir, "missing"))
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes namespaces")
	}
	dir := t.TempDir()
	for _, name := range []string{"empty", "used", "own"} {
		harness.Check(t, os.Mkdir(filepath.Join(dir, name), 0o755))
	}
	harness.Check(t, os.WriteFile(filepath.Join(dir, "used", "file"), nil, 0o600))
	// Not a pod: nothing is removed.
	leaveNode(filepath.Join(dir, "empty"))
	if _, err := os.Stat(filepath.Join(dir, "empty")); err != nil {
		t.Fatalf("a service has removed its folder: %v", err)
	}
	self := harness.Must(os.Executable())(t)
	cmd := exec.Command("unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", firstProcess, pod, dir, self, t.TempDir())
	cmd.Env = append(os.Environ(), "CNISCOPE_TEST_LEAVE="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "empty")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the empty folder is still there: %v", err)
	}
	for _, name := range []string{"used/file", "own"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Errorf("%s is gone: %v", name, err)
		}
	}
}
