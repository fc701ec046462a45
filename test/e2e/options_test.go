//go:build linux

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

// Mutual TLS, headers and compression, set at run time, and the same spans in a file that only root can read.
func TestOTLPOverTLSAndAFile(t *testing.T) {
	k, addr := newKeys(t), harness.Address(t)
	r := receive(t, addr, &backend{}, grpc.Creds(k.mutual))
	s := set(t, false, rig.Options{}, scope.Options{})
	destination := func(ca string) string {
		return fmt.Sprintf("[export.otlp]\nendpoint = %q\ncompression = \"gzip\"\ncert = %q\nkey = %q\nheaders = { authorization = \"Bearer x\", x-scope-orgid = \"nodes\" }\n%s\n",
			"https://"+addr, k.pem("client.crt"), k.pem("client.key"), ca)
	}
	// An unknown certificate is rejected.
	s.options(destination(""))
	s.pod(rig.PodOptions{Name: "web-0"})
	s.logged("certificate signed by unknown authority", 1)
	if got := r.got(); len(got) > 0 {
		t.Fatalf("%d spans went to a stranger", len(got))
	}
	// The queue is sent at once.
	s.options(destination(fmt.Sprintf("ca = %q", k.pem("ca.crt"))))
	harness.Eventually(s, func() error {
		if len(only(of(r.got(), "web-0"), "call", "CNI ADD")) < 2 {
			return errors.New("web-0's setup has not arrived")
		}
		return nil
	})
	before := len(r.got())
	file := filepath.Join(t.TempDir(), "spans")
	s.options(destination(fmt.Sprintf("ca = %q\n[export.file]\npath = %q", k.pem("ca.crt"), file)))
	for i := range 3 {
		harness.Check(t, s.rig.RemovePod(s.ctx, s.pod(rig.PodOptions{Name: fmt.Sprintf("both-%d", i)})))
	}
	harness.Check(t, s.scope.Stop()) // flushes the queue

	sent, written := r.got()[before:], spansIn(t, file)
	if ids(sent) != ids(written) || len(only(sent, "call", "CNI ADD")) != 6 || len(only(sent, "call", "CNI DEL")) == 0 {
		t.Errorf("%d spans were sent, %d written, or not the same:\n%s\n%s", len(sent), len(written), ids(sent), ids(written))
	}
	t.Logf("%d spans sent, %d written", len(sent), len(written))
	info, err := os.Stat(file)
	harness.Check(t, err)
	harness.Equal(t, info.Mode(), 0o600, "the file's mode")
	for _, q := range r.requests() {
		if q.compression != "gzip" || q.headers != "Bearer x, nodes" || q.client != "cniscope-client" {
			t.Errorf("a request: %+v", q)
		}
	}
}

// A ConfigMap's file is a moving link, and options change at run time.
func TestSamplingChangesWhileItRuns(t *testing.T) {
	s := set(t, false, rig.Options{
		Networks: []rig.Network{{Plugins: []rig.Plugin{rig.Bridge(), rig.Test("moody")}}},
		Plugins:  map[string][]byte{"moody": rig.Script(`case $CNI_ARGS in *K8S_POD_NAME=bad*) [ "$CNI_COMMAND" = DEL ] || fail 11 no;; esac`)},
	}, scope.Options{TOML: patient + served + "[sampling]\nratio = 1.0\nper_second = 0\n"})
	pid := s.scope.PID()
	mount := s.asConfigMap()
	s.pod(rig.PodOptions{Name: "first"})
	s.traced("first")

	mount.swap("ratio = 1.0", "ratio = 0.0\nkeep = [\"failed\"]")
	s.logged("sampling.ratio: 1.0 -> 0.0", 1)
	s.pod(rig.PodOptions{Name: "ordinary"})
	if _, err := s.rig.RunPod(s.ctx, rig.PodOptions{Name: "bad"}); err == nil {
		t.Fatal("the plugin was to fail")
	}
	s.spans("cniscope", func(all []*span) error {
		for _, x := range only(of(all, "bad"), "call", "CNI ADD") {
			if x.failed() {
				return nil
			}
		}
		return errors.New("what failed has not arrived")
	})

	mount.swap("ratio = 0.0", "ratio = \"half\"")
	s.logged("the new options cannot be used, the old ones stay", 1)
	for _, says := range []string{
		fmt.Sprintf("%s:%d:", s.scope.Config(), mount.line("ratio = ")), "sampling.ratio", "is text: write a number from 0 to 1",
	} {
		harness.Check(t, harness.Contains(s.scope.LogText(), says))
	}
	s.decided(4) // the setup of three pods, and the failed one's teardown
	s.pod(rig.PodOptions{Name: "still-ordinary"})
	s.decided(5) // by the old options

	mount.swap("ratio = \"half\"", "ratio = 1.0")
	s.logged("sampling.ratio: 0.0 -> 1.0", 1)
	s.pod(rig.PodOptions{Name: "last"})
	s.traced("last")
	all := s.calls("ADD", 5)
	for _, name := range []string{"ordinary", "still-ordinary"} {
		if got := of(all, name); len(got) > 0 {
			t.Errorf("%d spans of %s were kept", len(got), name)
		}
	}
	if s.scope.PID() != pid || strings.Count(s.scope.LogText(), "observing CNI calls") != 1 {
		t.Error("cniscope was restarted")
	}
}

// decided waits for n sampling decisions.
func (s *stage) decided(n float64) {
	s.Helper()
	harness.Eventually(s, func() error {
		sum := 0.0
		for series, value := range s.scrape() {
			if strings.HasPrefix(series, "cniscope_operations_total{") {
				sum += value
			}
		}
		if sum != n {
			return fmt.Errorf("%v operations have been decided about, want %v", sum, n)
		}
		return nil
	})
}

// options replaces a running cniscope's options and waits until they apply.
func (s *stage) options(toml string) {
	s.Helper()
	n := strings.Count(s.scope.LogText(), "msg=\"options changed\"")
	harness.Check(s.T, s.scope.SetOptions(toml+quick))
	s.logged("msg=\"options changed\"", n+1)
}

// configMap is a mounted ConfigMap: the file links into ..data, which links to the current version.
type configMap struct {
	*stage
	dir     string
	text    string
	version int
}

func (s *stage) asConfigMap() *configMap {
	s.Helper()
	m := &configMap{stage: s, dir: filepath.Dir(s.scope.Config()), text: string(s.read(s.scope.Config()))}
	m.publish()
	link := filepath.Join(m.dir, "link")
	harness.Check(s.T, os.Symlink(filepath.Join("..data", filepath.Base(s.scope.Config())), link))
	harness.Check(s.T, os.Rename(link, s.scope.Config()))
	return m
}

// swap changes the text.
func (m *configMap) swap(from, to string) {
	m.Helper()
	harness.Check(m.T, harness.Contains(m.text, from))
	m.text = strings.Replace(m.text, from, to, 1)
	m.publish()
}

// publish works like kubelet's AtomicWriter (pkg/volume/util/atomic_writer.go).
func (m *configMap) publish() {
	m.Helper()
	old, _ := os.Readlink(filepath.Join(m.dir, "..data")) // none the first time
	m.version++
	next := fmt.Sprintf("..version_%d", m.version)
	harness.Check(m.T, os.Mkdir(filepath.Join(m.dir, next), 0o755))
	harness.Check(m.T, os.WriteFile(filepath.Join(m.dir, next, filepath.Base(m.scope.Config())), []byte(m.text), 0o600))
	harness.Check(m.T, os.Symlink(next, filepath.Join(m.dir, "..data_tmp")))
	harness.Check(m.T, os.Rename(filepath.Join(m.dir, "..data_tmp"), filepath.Join(m.dir, "..data")))
	if old != "" {
		harness.Check(m.T, os.RemoveAll(filepath.Join(m.dir, old)))
	}
}

// line is where a text is, counted from 1.
func (m *configMap) line(text string) int {
	before, _, _ := strings.Cut(m.text, text)
	return strings.Count(before, "\n") + 1
}
