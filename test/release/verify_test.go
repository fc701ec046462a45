package release

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

type key struct{ secret, public, password string }

func newKey(t *testing.T) key {
	t.Helper()
	dir := t.TempDir()
	k := key{secret: filepath.Join(dir, "key"), public: filepath.Join(dir, "key.pub"), password: "correct horse"}
	cmd := exec.Command("minisign", "-G", "-s", k.secret, "-p", k.public)
	cmd.Stdin = strings.NewReader(k.password + "\n" + k.password + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("minisign (make tools-release installs it): %v\n%s", err, out)
	}
	return k
}

func (k key) text(t *testing.T) string {
	t.Helper()
	return string(harness.Must(os.ReadFile(k.secret))(t))
}

// verified verifies as SECURITY.md instructs users: minisign, then sha256sum.
func verified(dir string, k key) (string, error) {
	cmd := exec.Command("sh", "-c", `minisign -V -H -p "$1" -m checksums.txt && sha256sum --check --strict --quiet checksums.txt`, "sh", k.public)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// verify checks that the build passes, and that no file passes with a changed byte.
func verify(t *testing.T, built string, k key) {
	out, err := verified(built, k)
	if err != nil {
		t.Fatalf("what was built is refused: %v\n%s", err, out)
	}
	says(t, out, "cniscope "+version, "timestamp:")
	for _, name := range artifacts {
		dir := t.TempDir()
		for _, other := range artifacts {
			if other != name {
				harness.Check(t, os.Link(filepath.Join(built, other), filepath.Join(dir, other)))
			}
		}
		data := harness.Must(os.ReadFile(filepath.Join(built, name)))(t)
		at := len(data) / 2
		if name == "checksums.txt.minisig" {
			at = bytes.IndexByte(data, '\n') + 20 // within the signature: the line before is not signed
		}
		data[at] ^= 1
		harness.Check(t, os.WriteFile(filepath.Join(dir, name), data, 0o644))
		if out, err := verified(dir, k); err == nil {
			t.Errorf("a changed byte in %s is accepted:\n%s", name, out)
		}
		harness.Check(t, os.RemoveAll(dir))
	}
	if out, err := verified(built, newKey(t)); err == nil {
		t.Errorf("another key is accepted:\n%s", out)
	}
}
