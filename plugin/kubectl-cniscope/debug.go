package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/command"
	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/fleet"
	"github.com/cniscope/cniscope/pkg/fleet/cluster"
	"github.com/cniscope/cniscope/pkg/fleet/digest"
	"github.com/cniscope/cniscope/pkg/replay"
	"github.com/cniscope/cniscope/pkg/show"
	"github.com/cniscope/cniscope/pkg/text"
)

// released matches the versions that have an image.
var released = regexp.MustCompile(`^v?\d+\.\d+\.\d+$`)

func debugCmd(o *options) *cobra.Command {
	r := recording{options: o, length: 2 * time.Minute}
	var once cluster.Once
	pod := ""
	cmd := &cobra.Command{
		Use:   "debug node/NODE [-- doctor]",
		Short: "Observe a node that has no cniscope",
		Long: `Start cniscope on one node for --for or until Ctrl-C, and print the verdict of each pod setup as it
ends. debug writes a recording and an HTML page into the current directory. With "-- doctor" it reports
why pods on the node get no network.

It creates a Job in the current namespace, with the capabilities of the DaemonSet's pod, and removes
it at the end. If the connection breaks, the Job stops and removes itself. The image stays on the node.`,
		Example: `  kubectl cniscope debug node/node-7 --for 5m
  kubectl cniscope debug node/node-7 --pod shop/web-0
  kubectl cniscope debug node/node-7 -- doctor`,
		Args: func(_ *cobra.Command, args []string) error {
			switch _, ofNode := nodeName(strings.Join(args[:min(1, len(args))], "")); {
			case !ofNode || len(args) > 2 || len(args) == 2 && args[1] != fleet.Doctor:
				return command.Usagef("debug needs node/NODE, and accepts -- doctor")
			case r.length <= 0 || r.length > control.MaxRecord:
				return command.Usagef("--for %s: want a duration up to %s", r.length, text.Short(control.MaxRecord))
			case !path.IsAbs(once.ConfDir):
				return command.Usagef("--conf-dir %s: want an absolute path of the node", once.ConfDir)
			}
			return nil
		},
		RunE: o.runs(func(cmd *cobra.Command, args []string) error {
			once.Node, _ = nodeName(args[0])
			once.For = r.length
			if r.file == "" {
				r.file = once.Node + ".rec.gz"
			}
			return r.once(cmd, once, pod, len(args) == 2)
		}),
	}
	flags := cmd.Flags()
	flags.DurationVar(&r.length, "for", r.length, "how long to observe, up to "+text.Short(control.MaxRecord))
	flags.StringVar(&pod, "pod", "", "only this pod: POD or NAMESPACE/POD")
	flags.StringVar(&r.file, "file", "", "the recording; the page has its name with .html (default NODE.rec.gz)")
	flags.BoolVar(&r.overwrite, "overwrite", false, "replace these files if they exist")
	flags.StringVar(&once.Image, "image", "", "image of cniscope (default that of its pods, or of this version)")
	flags.StringVar(&once.Runtime, "runtime-socket", "/run/containerd/containerd.sock",
		"socket of the node's container runtime")
	flags.StringVar(&once.NRI, "nri-socket", "/run/nri/nri.sock", "NRI socket of the node's container runtime")
	flags.StringVar(&once.ConfDir, "conf-dir", "/etc/cni/net.d", "directory of the node's CNI configuration")
	return cmd
}

func (r *recording) once(cmd *cobra.Command, o cluster.Once, pod string, doctor bool) (err error) {
	question := []string{fleet.Record, "--for", r.length.String()}
	var of []string
	if o.Namespace, err = r.namespace(); err == nil && pod != "" {
		var namespace string
		namespace, pod, err = r.named(pod)
		of = []string{"--namespace", namespace, "--pod", pod}
	}
	if err != nil {
		return err
	}
	c, err := r.connect()
	if err != nil {
		return err
	}
	if o.Image == "" {
		o.Image = c.Image(cmd.Context(), r.home)
	}
	if o.Image == "" && !released.MatchString(thisBuild().Version) {
		return command.Usagef("this build, %s, has no published image, and no pod of cniscope was found: set --image "+
			"to an image that the node can pull", thisBuild().Version)
	}
	o.Image = cmp.Or(o.Image, "ghcr.io/cniscope/cniscope:"+thisBuild().Version)
	out := cmd.ErrOrStderr()
	fmt.Fprintf(out, "starting cniscope on %s, image %s\n", o.Node, o.Image)
	reader, stop, err := c.Start(cmd.Context(), o)
	defer func() {
		left := stop(out)
		if err = errors.Join(err, left); left != nil && cmd.Context().Err() != nil {
			err = codeError{fmt.Errorf("interrupted; %w", left), exitInterrupted}
		}
	}()
	if err != nil {
		return err
	}
	if doctor {
		r.limits.Patience = doctorPatience
		s := &session{options: r.options, Cluster: c, readers: []cluster.Reader{reader}, progress: newProgress(out)}
		return s.examine(cmd)
	}
	following, end := context.WithCancel(cmd.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); follow(following, c, reader, of, cmd.OutOrStdout()) }()
	err = r.from(cmd, c, reader, append(question, of...), "observing pods")
	end()
	<-ended
	return errors.Join(err, r.page(cmd))
}

type operations struct {
	Operations digest.List[control.Line]
	Next       uint64
}

func follow(ctx context.Context, c *cluster.Cluster, r cluster.Reader, of []string, out io.Writer) {
	for next := uint64(0); ctx.Err() == nil; {
		question := append([]string{fleet.Operations, "--after", strconv.FormatUint(next, 10), "--wait", "20s"}, of...)
		answer, err := c.Answer(ctx, r, question, answerMost)
		var said operations
		if err != nil || document(answer, &said) != nil {
			clock.Wait(ctx, time.Second)
			continue
		}
		next = said.Next
		for _, l := range said.Operations {
			var b strings.Builder
			l = digest.Line(l)
			explain(&b, l, fmt.Sprintf("  %s/%s", l.Namespace, l.Pod))
			_, _ = io.WriteString(out, b.String())
		}
	}
}

func (r *recording) page(cmd *cobra.Command) (err error) {
	if _, err := os.Stat(r.file); err != nil {
		return nil //nolint:nilerr // nothing was recorded
	}
	defer replay.Guard(r.file, &err)
	seen, err := replay.Load(context.WithoutCancel(cmd.Context()), r.file, replay.Options{})
	if err != nil {
		return err
	}
	defer seen.Close()
	file := strings.TrimSuffix(strings.TrimSuffix(r.file, ".gz"), ".rec") + ".html"
	flag := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if r.overwrite {
		flag = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	page, err := os.OpenFile(file, flag, 0o600)
	if err != nil {
		return err
	}
	err = errors.Join(show.Page(page, seen.Operations(), show.PageOptions{All: true}), page.Close(), seen.Failed())
	if err == nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: %d operations\n", file, seen.All)
	}
	return err
}
