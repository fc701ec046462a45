//go:build linux

// Command demo shows cniscope at work: a private containerd runs three pods over real CNI plugins. One plugin calls a
// slow command for one pod and fails for another. The demo needs root and removes everything that it made.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

// policy is a chained plugin whose tool is slow for one pod and refuses another.
const policy = `
if [ "$CNI_COMMAND" = ADD ]; then
	case "$CNI_ARGS" in
	*K8S_POD_NAME=slow-0*) policyctl apply --token "$SECRET" ;;
	*K8S_POD_NAME=broken-0*) policyctl refuse || fail 11 "no policy for this pod" ;;
	esac
fi
`

const policyctl = `#!/bin/sh
case "$1" in
apply) sleep 2.1; ip route get 127.0.0.1 >/dev/null ;;
refuse) exit 3 ;;
esac
`

func main() {
	otlp := flag.String("otlp", "", "also send the spans to this OTLP gRPC endpoint, HOST:PORT")
	keep := flag.String("keep", "", "keep the recording in this file")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *otlp, *keep)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func step(format string, args ...any) { fmt.Printf("\n==> "+format+"\n", args...) }

func run(ctx context.Context, otlp, keep string) (err error) {
	if os.Geteuid() != 0 {
		return errors.New("needs root, for network namespaces and BPF: sudo make demo (make show-demo draws a recorded one)")
	}
	work, err := os.MkdirTemp("", "cniscope-demo")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)

	step("building cniscope")
	program, err := scope.Build(ctx, work)
	if err != nil {
		return err
	}
	step("starting a private containerd; yours is not touched")
	options := rig.Options{
		Networks: []rig.Network{{Name: "pods", Plugins: []rig.Plugin{rig.Bridge(), rig.Portmap(), rig.Test("policy")}}},
		Plugins:  map[string][]byte{"policy": rig.Script("PATH=" + work + ":$PATH" + policy)},
	}
	if err := os.WriteFile(filepath.Join(work, "policyctl"), []byte(policyctl), 0o755); err != nil {
		return err
	}
	if otlp != "" {
		options.OTLP = "http://" + otlp
	}
	r, err := rig.Start(ctx, options)
	if err != nil {
		return err
	}
	defer func() {
		step("cleaning up")
		err = errors.Join(err, r.Close())
	}()
	recording := filepath.Join(work, "demo.rec")
	s, err := scope.Start(ctx, r, scope.Options{Program: program, Args: []string{"record", recording}})
	if err != nil {
		return err
	}
	if err := pods(ctx, r); err != nil {
		return err
	}
	time.Sleep(2500 * time.Millisecond)
	if err := s.Stop(); err != nil {
		return err
	}
	if keep != "" {
		data, err := os.ReadFile(recording)
		if err != nil {
			return err
		}
		if err := os.WriteFile(keep, data, 0o644); err != nil {
			return err
		}
	}
	step("cniscope show demo.rec")
	fmt.Println()
	if err := show(ctx, program, recording); err != nil {
		return err
	}
	if otlp != "" {
		return send(ctx, program, recording, otlp)
	}
	return nil
}

func pods(ctx context.Context, r *rig.Rig) error {
	for i, name := range []string{"web-0", "slow-0", "broken-0"} {
		step("running pod shop/%s", name)
		begin := time.Now()
		id, err := r.RunPod(ctx, rig.PodOptions{
			Namespace: "shop", Name: name, Labels: map[string]string{"app": name[:len(name)-2]},
			HostPorts: []rig.HostPort{{Host: int32(28080 + i), Container: 80}},
		})
		took := time.Since(begin).Round(time.Millisecond)
		switch {
		case err == nil:
			fmt.Printf("    containerd took %s\n", took)
		case name == "broken-0":
			fmt.Printf("    containerd gave up after %s, as it should here: %v\n", took, err)
			continue
		default:
			return err
		}
		if err := r.RemovePod(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

func show(ctx context.Context, program, recording string) error {
	cmd := exec.CommandContext(ctx, program, "show", recording)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

var traceID = regexp.MustCompile(`trace ([0-9a-f]{32})`)

func send(ctx context.Context, program, recording, otlp string) error {
	step("sending the spans to %s", otlp)
	cmd := exec.CommandContext(ctx, program, "show", recording, "--otlp", otlp)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return err
	}
	text, err := exec.CommandContext(ctx, program, "show", "--all", recording).Output()
	if err != nil {
		return err
	}
	host, _, err := net.SplitHostPort(otlp)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, match := range traceID.FindAllSubmatch(text, -1) {
		if id := string(match[1]); !seen[id] {
			seen[id] = true
			fmt.Printf("    http://%s/trace/%s\n", net.JoinHostPort(host, "16686"), id)
		}
	}
	return nil
}
