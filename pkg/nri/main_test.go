//go:build linux

package nri

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containerd/nri/pkg/api"
	nrilog "github.com/containerd/nri/pkg/log"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/record"
)

func TestMain(m *testing.M) {
	nrilog.Set(stubLog{slog.New(slog.DiscardHandler)})
	switch {
	case os.Getenv(api.PluginSocketEnvVar) != "":
		pluginMain()
	case os.Getenv(runtimeDir) != "":
		runtimeMain(os.Getenv(runtimeDir))
	default:
		os.Exit(m.Run())
	}
}

// runtimeDir is set in the environment of the runtime process.
const runtimeDir = "CNISCOPE_TEST_RUNTIME"

// runtimeMain is the runtime's side of NRI. It answers a line "run ID" with "ok" when the pod has run.
func runtimeMain(dir string) {
	r, err := startRuntime(dir, pod("present"))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		id := strings.TrimPrefix(lines.Text(), "run ")
		if err := r.run(context.Background(), pod(id)); err != nil {
			fmt.Println(err)
		}
		fmt.Println("ok")
	}
}

// pluginMain is a pre-installed plugin. It records to DIR/recording, and writes its result to DIR/ended.
func pluginMain() {
	dir := filepath.Dir(filepath.Dir(os.Args[0]))
	err := func() error {
		out, err := record.Create(filepath.Join(dir, "recording"), record.Header{}, true)
		if err != nil {
			return err
		}
		p := New(Options{
			Socket: filepath.Join(dir, "nri.sock"),
			Configure: func(text string) error {
				return os.WriteFile(filepath.Join(dir, "configured"), []byte(text), 0o600)
			},
		})
		p.pace = testPace
		return p.Run(context.Background(), func(e event.Event) {
			_ = out.Write(e)
			_ = out.Flush()
		})
	}()
	_ = os.WriteFile(filepath.Join(dir, "ended.new"), []byte(fmt.Sprint(err)), 0o600)
	_ = os.Rename(filepath.Join(dir, "ended.new"), filepath.Join(dir, "ended"))
}
