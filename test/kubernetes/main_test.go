//go:build linux

// Package kubernetes runs cniscope as the DaemonSet of examples/kubernetes on a real node: etcd, kube-apiserver, a
// tracing kubelet, containerd, CNI plugins, Jaeger.
package kubernetes

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

func TestMain(m *testing.M) {
	if os.Geteuid() != 0 {
		os.Exit(m.Run())
	}
	dir, err := os.MkdirTemp("", "cniscope-image")
	if err == nil {
		err = prepare(context.Background(), dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := harness.Host(m)
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

func named(manifest string) (string, error) {
	text, err := os.ReadFile(manifest)
	if err != nil {
		return "", err
	}
	image := regexp.MustCompile(`(?m)^ *image: "(.+)"$`).FindSubmatch(text)
	if image == nil {
		return "", fmt.Errorf("%s names no image", manifest)
	}
	return string(image[1]), nil
}

// buildImage builds the image and kubectl's plugin of the working tree.
func buildImage(ctx context.Context, dir string) error {
	imageArchive, pluginFile = filepath.Join(dir, "image.tar"), filepath.Join(dir, "kubectl-cniscope")
	for _, command := range [][]string{
		{
			"go", "build", "-trimpath", "-ldflags", "-s -w",
			"-o", filepath.Join(dir, "bin", "linux-"+runtime.GOARCH) + "/",
			"github.com/cniscope/cniscope/plugin/cniscope", "github.com/cniscope/cniscope/plugin/cniscope-reader",
		},
		{
			"go", "run", "github.com/cniscope/cniscope/configs/image/build",
			"-context", dir, "-name", imageName, "-arch", runtime.GOARCH, "-o", imageArchive,
		},
		{"go", "build", "-o", pluginFile, "github.com/cniscope/cniscope/plugin/kubectl-cniscope"},
	} {
		cmd := exec.CommandContext(ctx, command[0], command[1:]...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w\n%s", command[:2], err, out)
		}
	}
	return nil
}
