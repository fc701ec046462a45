package kernels

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cavaliergopher/cpio"

	"github.com/cniscope/cniscope/test/harness"
)

func initramfs(t *testing.T, k kernel) string {
	t.Helper()
	packed.Lock()
	defer packed.Unlock()
	key := fmt.Sprint(k.arch(), k.programs)
	if packed.archives[key] == nil {
		packed.archives[key] = pack(t, programs(t, k))
	}
	file := filepath.Join(t.TempDir(), "initramfs")
	harness.Check(t, os.WriteFile(file, append(slices.Clip(packed.archives[key]), pack(t, modules(t, k))...), 0o644))
	return file
}

// packed caches archives, which nearly all machines of an architecture share.
var packed = struct {
	sync.Mutex
	archives map[string][]byte
}{archives: map[string][]byte{}}

func programs(t *testing.T, k kernel) map[string][]byte {
	t.Helper()
	sources, files := map[string]string{"init": "./vm", "cniscope": "../../plugin/cniscope"}, map[string][]byte{}
	maps.Copy(sources, k.programs)
	for name, source := range sources {
		files[name] = build(t, k.arch(), source)
	}
	return files
}

func modules(t *testing.T, k kernel) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for _, module := range harness.Must(filepath.Glob(filepath.Join(filepath.Dir(k.file()), "modules/*.ko")))(t) {
		files["modules/"+filepath.Base(module)] = harness.Must(os.ReadFile(module))(t)
	}
	return files
}

func pack(t *testing.T, files map[string][]byte) []byte {
	t.Helper()
	var archive bytes.Buffer
	w := cpio.NewWriter(&archive)
	harness.Check(t, w.WriteHeader(&cpio.Header{Name: "modules", Mode: cpio.TypeDir | 0o755}))
	for name, file := range files {
		harness.Check(t, w.WriteHeader(&cpio.Header{Name: name, Mode: cpio.TypeReg | 0o755, Size: int64(len(file))}))
		harness.Must(w.Write(file))(t)
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
