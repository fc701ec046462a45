package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/command"
	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/doctor"
	"github.com/cniscope/cniscope/pkg/export"
	"github.com/cniscope/cniscope/pkg/node/destinations"
	"github.com/cniscope/cniscope/pkg/record"
	"github.com/cniscope/cniscope/pkg/settings"
	"github.com/cniscope/cniscope/pkg/text"
	"github.com/cniscope/cniscope/pkg/trace"
)

type doctorFlags struct {
	file             optionsFile
	format, wait     string
	timeout, answers time.Duration
	kubelet          string
}

func doctorCmd() *cobra.Command {
	var f doctorFlags
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Report why pods on this node get no network",
		Long: `Report what prevents pods on this node from getting a network, and what soon will. Each
finding has its evidence and its remedies (→). A legend at the end explains the other signs.

doctor asks the container runtime which CNI configuration it has loaded. It checks the CNI
directory, its plugins, the containers that install them, and the agents that plugins call. It
checks kubelet, service proxies, remains of other CNIs, and hung and failed CNI calls. It also
checks locks, NRI, the kernel, the clock and, by one test span, the OTLP endpoint. It changes
nothing, runs no plugin or command, and needs no access to the cluster.

The exit code is 1 if a problem or a warning was found. Otherwise it is 3 if a check could not
be made or the configuration file is invalid, and 0 if not. Notes (·) do not count. Without root,
doctor makes fewer checks and names the others.

With --wait STAGE, doctor waits until this node reaches a stage of its installation (below). It
prints each missing step, and exits with 0 when the stage is reached. After --timeout it makes
all checks and exits with 1, or with 3 if it has no permission to ask the runtime.

  runtime   the container runtime answers and can run pods
  cni       the CNI configuration is written and loaded, and its plugins can be run
  agent     the agents that the loaded plugins call accept connections
  ready     the runtime reports the network as ready, its plugins can be run, and the agents accept connections
  dns       the cluster DNS of the kubelet resolves names`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	f.file.flag(cmd)
	flags := cmd.Flags()
	formatFlag(cmd, &f.format)
	var gates []string
	for _, gate := range doctor.Gates() {
		gates = append(gates, gate.Name)
	}
	flags.Var(choice{&f.wait, gates}, "wait", "wait until this node reaches a stage: "+strings.Join(gates, ", "))
	flags.DurationVar(&f.timeout, "timeout", 2*time.Minute, "with --wait, stop waiting after this duration")
	flags.DurationVar(&f.answers, "answer-timeout", doctor.DefaultPatience, "wait up to this duration for each answer")
	command.Formerly(cmd, "patience", "answer-timeout")
	flags.StringVar(&f.kubelet, "kubelet", doctor.DefaultKubelet, "host and port of the healthz endpoint of kubelet")
	return cmd
}

type unhealthy struct {
	error
	code int
}

func (u unhealthy) ExitCode() int { return u.code }

func (f doctorFlags) run(cmd *cobra.Command) error {
	if f.wait == "" && cmd.Flags().Changed("timeout") {
		return command.Usagef("--timeout needs --wait STAGE")
	}
	if f.timeout < 0 || f.answers <= 0 {
		return command.Usagef("--timeout and --answer-timeout want a duration, such as 30s")
	}
	o, err := f.file.load()
	if err != nil {
		return unhealthy{err, doctor.ExitUnchecked}
	}
	ask := f.options(o)
	var missing error
	if f.wait != "" {
		if missing = f.waited(cmd, ask); missing == nil || errors.As(missing, new(unhealthy)) {
			return missing
		}
	}
	report := doctor.Examine(cmd.Context(), ask)
	if cmd.Context().Err() != nil {
		return unhealthy{fmt.Errorf("interrupted after %s", text.Round(report.Took)), doctor.ExitUnchecked}
	}
	if f.format == "json" {
		err = command.Indented(cmd.OutOrStdout(), newDoctorDocument(report))
	} else {
		err = report.Text(marked(cmd))
	}
	switch code := report.ExitCode(); {
	case err != nil:
		return err
	case missing != nil:
		return unhealthy{missing, doctor.ExitFindings}
	case code != doctor.ExitHealthy:
		if f.format != "json" {
			return unhealthy{errors.New(""), code}
		}
		return unhealthy{errors.New(report.Summary()), code}
	}
	return nil
}

// doctorDocument is what doctor -o json prints: docs/schemas/doctor.json.
type doctorDocument struct {
	Schema string `json:"schema"`
	doctor.Report
}

// newDoctorDocument has empty lists in place of null.
func newDoctorDocument(r doctor.Report) doctorDocument {
	findings := []doctor.Finding{}
	for _, f := range r.Findings {
		f.Evidence, f.Remedy = append([]string{}, f.Evidence...), append([]string{}, f.Remedy...)
		findings = append(findings, f)
	}
	r.Findings, r.Checks = findings, append([]doctor.Outcome{}, r.Checks...)
	return doctorDocument{"cniscope.dev/doctor/v1", r}
}

func (f doctorFlags) options(o config.Options) doctor.Options {
	ask := doctor.Options{
		Node: o.Resource.Node, Address: o.Runtime.Socket, ConfDir: o.CNI.ConfDir, RunDir: o.State.Dir,
		Hung: o.Slow.Hung, Leak: o.Leaks.After, Kubelet: f.kubelet, Patience: f.answers, Wait: f.timeout,
	}
	if o.NRI.Enabled {
		ask.NRISocket = o.NRI.Socket
	}
	if endpoint, _ := o.Export.OTLP.Target(); endpoint != "" {
		ask.Endpoint = o.Export.OTLP.Endpoint
		ask.Send = func(ctx context.Context) error { return sendTest(ctx, o) }
	}
	return ask
}

func sendTest(ctx context.Context, o config.Options) error {
	out, err := destinations.OpenOTLP(o.Export)
	if err != nil {
		return err
	}
	defer out.Shutdown(ctx) //nolint:errcheck // it has been sent, or not
	boot := record.Host().BootID
	span := trace.Test(settings.Of(o, boot, version()).Node, trace.IDs{Seed: boot}, time.Now())
	return export.Send(ctx, out, []*tracepb.ResourceSpans{span})
}

func (f doctorFlags) waited(cmd *cobra.Command, o doctor.Options) error {
	gates := doctor.Gates()
	gate := gates[slices.IndexFunc(gates, func(g doctor.Gate) bool { return g.Name == f.wait })]
	began := time.Now()
	missing, denied := gate.Wait(cmd.Context(), o, func(missing string) {
		fmt.Fprintf(cmd.ErrOrStderr(), "waited %s: %s\n", time.Since(began).Round(time.Second), missing)
	})
	elapsed := text.Round(time.Since(began))
	switch {
	case cmd.Context().Err() != nil:
		return unhealthy{fmt.Errorf("interrupted after %s: %s is not ready", elapsed, gate.What), doctor.ExitFindings}
	case denied:
		return unhealthy{errors.New(missing), doctor.ExitUnchecked}
	case missing != "":
		return fmt.Errorf("%s is not ready after %s: %s", gate.What, elapsed, missing)
	}
	return f.ready(cmd.OutOrStdout(), gate, time.Since(began))
}

func (f doctorFlags) ready(out io.Writer, gate doctor.Gate, took time.Duration) error {
	if f.format == "json" {
		return command.Indented(out, map[string]any{"schema": "cniscope.dev/doctor-ready/v1", "ready": true, "waited_ns": took})
	}
	_, err := fmt.Fprintf(out, "%s is ready, after %s\n", gate.What, took.Round(time.Millisecond))
	return err
}
