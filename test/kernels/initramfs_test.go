package kernels

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/cavaliergopher/cpio"

	"github.com/cniscope/cniscope/test/harness"
)

func initramfs(t *testing.T, arch string, more map[string]string) string {
	t.Helper()
	packed.Lock()
	defer packed.Unlock()
	key := fmt.Sprint(arch, more)
	if packed.archives[key] == nil {
		packed.archives[key] = pack(t, arch, more)
	}
	file := filepath.Join(t.TempDir(), "initramfs")
	harness.Check(t, os.WriteFile(file, packed.archives[key], 0o644))
	return file
}

// packed caches archives, which nearly all machines of an architecture share.
var packed = struct {
	sync.Mutex
	archives map[string][]byte
}{archives: map[string][]byte{}}

func pack(t *testing.T, arch string, more map[string]string) []byte {
	t.Helper()
	var archive bytes.Buffer
	w := cpio.NewWriter(&archive)
	programs := map[string]string{"init": "./vm", "cniscope": "../../plugin/cniscope"}
	maps.Copy(programs, more)
	for name, source := range programs {
		program := build(t, arch, source)
		header := &cpio.Header{Name: name, Mode: cpio.TypeReg | 0o755, Size: int64(len(program))}
		harness.Check(t, w.WriteHeader(header))
		if _, err := w.Write(program); err != nil {
			t.Fatal(err)
		}
	}
	harness.Check(t, w.Close())
	return archive.Bytes()
}

func build(t *testing.T, arch, source string) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "program")
	args := append([]string{"build", "-ldflags", "-s -w", "-o", file}, strings.Fields(source)...)
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	program := harness.Must(os.ReadFile(file))(t)
	return program
}
