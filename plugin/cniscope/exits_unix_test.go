// Windows has no signals, and its services end by the service manager (service_windows_test.go).
//go:build unix

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/cniscope/cniscope/pkg/baseline"
	"github.com/cniscope/cniscope/pkg/node/learned"
	"github.com/cniscope/cniscope/pkg/replay"
	"github.com/cniscope/cniscope/test/harness"
)

// program is cniscope, to be ended with each of its codes.
type program struct {
	*testing.T
	dir, options string
}

func (p program) command(args ...string) *exec.Cmd {
	c := exec.CommandContext(p.Context(), os.Args[0], args...)
	c.Env = append(os.Environ(), beProgram+"=1")
	return c
}

func (p program) file(name, text string) string {
	p.Helper()
	path := filepath.Join(p.dir, name)
	harness.Check(p, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)))
	return path
}

// A row of the table is a promise: each command is ended with each of its codes.
func TestEveryExitCode(t *testing.T) {
	p := program{T: t, dir: t.TempDir()}
	isReadyAt := servesReady(t, filepath.Join(p.dir, "ready.sock"))
	p.options = p.file("cniscope.toml", fmt.Sprintf("[state]\ndir = %q\n[runtime]\nsocket = %q\n[nri]\nenabled = false\n", filepath.Join(p.dir, "run"), filepath.Join(p.dir, "none.sock")))
	remembers := remembering(t, threePods)
	isReady := p.file("ready.toml", fmt.Sprintf("[state]\ndir = %q\n[runtime]\nsocket = %q\n[nri]\nenabled = false\n", filepath.Join(p.dir, "run"), isReadyAt))
	knows, learns := p.learnt("knows", knownUsual()), p.learnt("learns", nil)
	wrong := p.file("wrong.toml", "[slow]\ncomand = 1\n")
	unwise := p.file("unwise.toml", "[export.otlp]\nendpoint = \"http://tempo:4318\"\n")
	p.file("debian/etc/containerd/config.toml", "version = 3\n")
	p.file("talos/etc/os-release", "ID=talos\n")
	debian, talos := filepath.Join(p.dir, "debian"), filepath.Join(p.dir, "talos")
	partly := filepath.Dir(p.file("spool/0000000000000001.segment", "damaged"))
	const pods = recordings + "/three-pods.rec"
	whole := string(harness.Must(os.ReadFile(pods))(t))
	cut := p.file("cut.rec", whole[:len(whole)*2/3])
	ways := map[string][][]string{
		" 0":             {{"--help"}, {"help", "show"}, {"--version"}},
		" 1":             {{"show", "/not/there"}},
		" 2":             {{"bogus"}, {"--bogus"}, {"config"}, {"config", "bogus"}, {"show"}, {"show", "a", "b"}, {"ps", "x"}, {"ps", "--format", "x"}, {"why"}, {"why", "x", "--format", "x"}, {"why", "x", "--last", "0"}, {"top", "x"}, {"top", "--since", "0s"}, {"baseline", "x"}, {"baseline", "--format", "x"}, {"baseline", "--import", "x", "--export", "y"}, {"diff", "a"}, {"record"}, {"record", "x", "--for", "-1s"}, {"install", "--as", "x"}, {"install", "x"}, {"run", "x"}, {"status", "--format", "x"}, {"config", "check", "a", "b"}, {"version", "x"}, {"version", "--format", "x"}, {"uninstall", "--bogus"}, {"doctor", "--wait", "x"}, {"doctor", "--timeout", "1s"}, {"doctor", "--format", "x"}, {"doctor", "--answer-timeout", "0s"}},
		"run 1":          {{"run", "--config", wrong}, {"run", "--config", "/not/there"}},
		"record 1":       {{"record", "--config", p.options, pods}},
		"show 0":         {{"show", pods}, {"show", pods, "--max-call", "1h"}},
		"show 1":         {{"show", "/not/there"}, {"show", pods, "--max-call", "1ms"}, {"show", pods, "--pod", "nobody"}},
		"show 2":         {{"show", pods, "--max-call", "0s"}, {"show", pods, "--pod", "nobody", "--max-call", "1s"}, {"show", "/not/there", "--max-failed", "0"}, {"show", pods, "--format", "x"}, {"show", "--last", "0s"}},
		"show 3":         {{"show", cut}, {"show", "--last", "1h", "--spool", partly}, {"show", "--last", "1h", "--spool", partly, "--max-call", "1h"}, {"show", "--last", "1h", "--spool", partly, "--pod", "nobody"}},
		"diff 0":         {{"diff", pods, pods}, {"diff", pods, pods, "--format", "json"}},
		"diff 1":         {{"diff", pods, "/not/there"}, {"diff", pods, pods, "--pod", "nobody"}},
		"ps 1":           {{"ps", "--config", p.options}},
		"why 0":          {{"why", "shop/slow-0", "--config", remembers}, {"why", "slow-0", "--format", "json", "--config", remembers}},
		"why 1":          {{"why", "shop/nobody", "--config", remembers}, {"why", "shop/slow-0", "--config", p.options}},
		"top 0":          {{"top", "--config", remembers}},
		"top 1":          {{"top", "--config", p.options}},
		"baseline 0":     {{"baseline", "--config", knows}, {"baseline", "--config", knows, "--format", "json"}, {"baseline", "--config", knows, "--export", filepath.Join(p.dir, "usual.json")}, {"baseline", "--config", learns, "--import", filepath.Join(p.dir, "usual.json")}, {"baseline", "--config", learns}},
		"baseline 1":     {{"baseline", "--config", p.options}, {"baseline", "--config", p.options, "--import", "/not/there"}, {"baseline", "--config", learns, "--import", wrong}, {"baseline", "--config", knows, "--export", wrong}},
		"doctor 0":       {{"doctor", "--config", isReady, "--wait", "ready"}},
		"doctor 1":       {{"doctor", "--config", p.options}, {"doctor", "--config", p.options, "--wait", "ready", "--timeout", "1ms"}},
		"doctor 3":       {{"doctor", "--config", wrong}},
		"config check 0": {{"config", "check", p.options}, {"config", "check", unwise}, {"config", "check", "--strict", p.options}},
		"config check 1": {{"config", "check", wrong}, {"config", "check", "/not/there"}, {"config", "check", "--strict", unwise}},
		"config print 0": {{"config", "print"}, {"config", "print", p.options}},
		"config print 1": {{"config", "print", wrong}},
		"install 0":      {{"install", "--root", debian, "--dry-run"}, {"install", "--root", debian}, {"install", "--root", debian}},
		"install 1":      {{"install", "--root", talos}, {"install", "--root", filepath.Join(p.dir, "empty")}},
		"status 0":       {{"status", "--root", debian}},
		"status 1":       {{"status", "--root", talos}},
		"uninstall 0":    {{"uninstall", "--root", debian, "--dry-run"}, {"uninstall", "--root", debian}},
		"uninstall 1":    {{"uninstall", "--root", talos}},
		"version 0":      {{"version"}, {"version", "--format", "json"}},
	}
	for _, e := range exits() {
		key := e.command + " " + e.code
		switch key {
		case " 128+n":
			t.Run(key, p.endTwice)
			continue
		case "run 0", "run 75", "ps 0", "record 0", "record 75":
			continue // below, since they need root
		}
		if len(ways[key]) == 0 {
			t.Errorf("nothing ends %q with %s", e.command, e.code)
		}
		for _, args := range ways[key] {
			p.ends(args, e.code)
		}
	}
	t.Run("run, ps and record", p.observe)
}

// learnt writes options with a folder for a baseline, and one into it unless that is nil.
func (p program) learnt(name string, d *baseline.Document) (options string) {
	p.Helper()
	dir := filepath.Join(p.dir, name)
	if d != nil {
		harness.Check(p, learned.Write(dir, d))
	}
	return p.file(name+".toml", fmt.Sprintf("[state]\ndir = %q\n[slow]\nbaseline_dir = %q\n", filepath.Join(p.dir, name+"-run"), dir))
}

func (p program) ends(args []string, code string) {
	p.Helper()
	c := p.command(args...)
	var said bytes.Buffer
	c.Stdout, c.Stderr = &said, &said
	_ = c.Run()
	if got := c.ProcessState.ExitCode(); fmt.Sprint(got) != code {
		p.Errorf("cniscope %s ends with %d, want %s:\n%s", strings.Join(args, " "), got, code, said.String())
	}
}

// endTwice sends two signals. After the first one the error waits at a full pipe, so the second one ends the program.
func (p program) endTwice(t *testing.T) {
	var pipe [2]int
	harness.Check(t, syscall.Pipe(pipe[:]))
	reader, full := os.NewFile(uintptr(pipe[0]), "reader"), os.NewFile(uintptr(pipe[1]), "full")
	defer reader.Close()
	defer full.Close()
	c := p.command("doctor", "--config", p.options, "--wait", "ready", "--timeout", "1h")
	c.Stderr = full
	harness.Check(t, c.Start())
	_, _ = reader.Read(make([]byte, 1)) // it waits
	harness.Check(t, syscall.SetNonblock(pipe[1], true))
	for err := error(nil); err == nil; {
		_, err = syscall.Write(pipe[1], make([]byte, os.Getpagesize()))
	}
	harness.Check(t, syscall.SetNonblock(pipe[1], false))
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		harness.Check(t, c.Process.Signal(s))
	}
	_ = c.Wait()
	if code := c.ProcessState.ExitCode(); code != 130 && code != 143 {
		t.Errorf("two signals end it with %d, not 130 or 143", code)
	}
}

// observe runs cniscope as root does.
func (p program) observe(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: observes the node")
	}
	log := harness.Must(os.Create(filepath.Join(p.dir, "log")))(t)
	defer log.Close()
	c := p.command("run", "--config", p.options)
	c.Stderr = log
	harness.Check(t, c.Start())
	defer c.Process.Kill() //nolint:errcheck // it has ended
	said := func() string {
		return string(harness.Must(os.ReadFile(log.Name()))(t))
	}
	// While the kernel checks the BPF programs no signal can end it; on a busy machine that takes seconds.
	harness.Eventually(t, func() error { return harness.Contains(said(), "observing CNI calls") })
	harness.Eventually(t, func() error {
		ps := p.command("ps", "--config", p.options)
		said, err := ps.CombinedOutput()
		if err != nil {
			return fmt.Errorf("ps: %w: %s", err, said)
		}
		return nil
	})
	p.ends([]string{"record", "--config", p.options, "--for", "5s", filepath.Join(p.dir, "x.rec")}, "0")
	p.ends([]string{"run", "--config", p.options}, "75")
	harness.Check(t, c.Process.Signal(syscall.SIGSTOP))
	p.ends([]string{"record", "--config", p.options, "--for", "100ms", filepath.Join(p.dir, "y.rec")}, "75")
	for _, s := range []syscall.Signal{syscall.SIGCONT, syscall.SIGTERM} {
		harness.Check(t, c.Process.Signal(s))
	}
	if err := c.Wait(); err != nil {
		t.Errorf("run, told to end: %v\n%s", err, said())
	}
	if _, err := os.Stat(filepath.Join(p.dir, "run")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("run and record leave the state directory that they made: %v", err)
	}
}

// servesReady serves a runtime whose network is ready, and returns its socket.
func servesReady(t *testing.T, socket string) string {
	t.Helper()
	l := harness.Must(net.Listen("unix", socket))(t)
	s := grpc.NewServer()
	cri.RegisterRuntimeServiceServer(s, readyRuntime{})
	go s.Serve(l) //nolint:errcheck // it ends with the test
	t.Cleanup(s.Stop)
	return socket
}

type readyRuntime struct {
	cri.UnimplementedRuntimeServiceServer
}

func (readyRuntime) Version(context.Context, *cri.VersionRequest) (*cri.VersionResponse, error) {
	return &cri.VersionResponse{RuntimeName: "other", RuntimeVersion: "1"}, nil
}

func (readyRuntime) Status(context.Context, *cri.StatusRequest) (*cri.StatusResponse, error) {
	return &cri.StatusResponse{Status: &cri.RuntimeStatus{Conditions: []*cri.RuntimeCondition{
		{Type: cri.RuntimeReady, Status: true}, {Type: cri.NetworkReady, Status: true},
	}}}, nil
}

// A pipe without a writer, and one whose writer stops in the middle, are read for --timeout at most.
func TestAPipeThatSaysNothing(t *testing.T) {
	path, half := filepath.Join(t.TempDir(), "pipe"), filepath.Join(t.TempDir(), "pipe")
	harness.Check(t, errors.Join(syscall.Mkfifo(path, 0o600), syscall.Mkfifo(half, 0o600)))
	o := replay.Options{Timeout: 10 * time.Millisecond}
	if _, err := replay.Load(t.Context(), path, o); err == nil || !strings.Contains(err.Error(), "check that a program writes into it") {
		t.Errorf("nobody writes: %v", err)
	}

	if late, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil { // who still waits finds it empty
		_ = late.Close()
	}

	writer := harness.Must(os.OpenFile(half, os.O_RDWR, 0))(t)
	defer writer.Close()
	recording := harness.Must(os.ReadFile(recordings + "/three-pods.rec"))(t)
	ctx, end := context.WithCancel(t.Context())
	go func() {
		_, _ = writer.Write(recording[:len(recording)/2])
		end() // the first Ctrl-C
	}()
	if _, err := replay.Load(ctx, half, replay.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("half of it came: %v", err)
	}
}

// A writer that stops or drips in the middle does not hold up a command for longer than --timeout. What came is shown.
func TestAPipeWhoseWriterStops(t *testing.T) {
	plain, err := os.ReadFile(recordings + "/three-pods.rec")
	harness.Check(t, err)
	var zipped bytes.Buffer
	zip := gzip.NewWriter(&zipped)
	_, err = zip.Write(plain)
	harness.Check(t, errors.Join(err, zip.Close()))
	firstLine := plain[:bytes.IndexByte(plain, '\n')+1]
	for name, feed := range map[string]func(w *os.File){
		"after the first line":     func(w *os.File) { _, _ = w.Write(firstLine) },
		"in the middle of a line":  func(w *os.File) { _, _ = w.Write(plain[:len(plain)/2]) },
		"inside a block of gzip":   func(w *os.File) { _, _ = w.Write(zipped.Bytes()[:zipped.Len()-20]) },
		"dripping":                 func(w *os.File) { drip(w, firstLine, plain[len(firstLine):]) },
		"one line without its end": func(w *os.File) { drip(w, firstLine, bytes.Repeat([]byte("x"), 1<<16)) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "pipe")
			harness.Check(t, syscall.Mkfifo(path, 0o600))
			w := harness.Must(os.OpenFile(path, os.O_RDWR, 0))(t)
			defer w.Close()
			go feed(w)
			r := harness.Must(replay.Load(t.Context(), path, replay.Options{Timeout: 300 * time.Millisecond}))(t)
			defer r.Close()
			if late := r.Incomplete(); late == nil || !strings.Contains(late.Error(), "took longer than 300ms") {
				t.Errorf("it ended with %v", late)
			}

			c := exec.CommandContext(t.Context(), os.Args[0], "show", "--timeout", "300ms", "--max-call", "1h", "-")
			c.Env = append(os.Environ(), beProgram+"=1")
			in, write, err := os.Pipe()
			harness.Check(t, err)
			defer write.Close()
			c.Stdin = in
			go feed(write)
			if said, err := c.CombinedOutput(); c.ProcessState.ExitCode() != 2 || !strings.Contains(string(said), "took longer than 300ms") {
				t.Errorf("on standard input: %v: %s", err, said)
			}
		})
	}
}

// drip writes the first part at once and the rest a byte at a time, until it cannot.
func drip(w *os.File, first, rest []byte) {
	_, err := w.Write(first)
	for i := 0; err == nil && i < len(rest); i++ {
		time.Sleep(5 * time.Millisecond)
		_, err = w.Write(rest[i : i+1])
	}
}
