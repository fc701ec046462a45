package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cniscope/cniscope/pkg/command"
	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/fleet"
	"github.com/cniscope/cniscope/pkg/fleet/cluster"
	"github.com/cniscope/cniscope/pkg/terminal"
	"github.com/cniscope/cniscope/pkg/text"
)

func recordCmd(o *options) *cobra.Command {
	r := recording{options: o, length: 30 * time.Second}
	cmd := &cobra.Command{
		Use:   "record POD|node/NODE [FILE]",
		Short: "Record the CNI calls of a pod or of a node into a file",
		Long: `Record the CNI calls of one pod, or of all pods of one node, for --for or until Ctrl-C. "cniscope
show" draws the file. It contains no raw arguments, environment variables or configurations.

kubelet retries a pod that fails. Start the recording and wait for the next attempt.`,
		Example: `  kubectl cniscope record web-0                          30 s, into web-0.rec.gz
  kubectl cniscope record node/node-7 n7.rec.gz --for 2m
  cniscope show --html n7.rec.gz > n7.html`,
		Args: cobra.RangeArgs(1, 2),
		RunE: o.runs(func(cmd *cobra.Command, args []string) error {
			if r.length <= 0 || r.length > control.MaxRecord {
				most := text.Short(control.MaxRecord)
				return command.Usagef("--for %s: want a duration up to %s", cmd.Flag("for").Value, most)
			}
			if len(args) == 2 {
				r.file = args[1]
			}
			return r.run(cmd, args[0])
		}),
	}
	cmd.Flags().DurationVar(&r.length, "for", r.length, "how long to record, up to "+text.Short(control.MaxRecord))
	cmd.Flags().StringVarP(&r.file, "output", "o", "", "the file, or standard output (-) (default NAME.rec.gz)")
	_ = cmd.Flags().MarkHidden("output")
	cmd.Flags().BoolVar(&r.overwrite, "overwrite", false, "replace the file if it exists")
	return cmd
}

const recordingMost = 512 << 20 // a node stops at 256 MB

type recording struct {
	*options
	length    time.Duration
	file      string
	overwrite bool
}

func (r *recording) run(cmd *cobra.Command, name string) error {
	c, err := r.connect()
	if err != nil {
		return err
	}
	question := []string{fleet.Record, "--for", r.length.String()}
	node, ofNode := nodeName(name)
	file := node
	if !ofNode {
		namespace, pod, err := r.named(name)
		if err != nil {
			return err
		}
		if node, err = nodeOf(cmd.Context(), c, namespace, pod); err != nil {
			return err
		}
		question = append(question, "--namespace", namespace, "--pod", pod)
		file = pod
	}
	s, err := r.open(cmd.Context(), c, "", cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	reader, err := s.reader(node)
	if err != nil {
		return err
	}
	if r.file == "" {
		r.file = file + ".rec.gz"
	}
	return r.from(cmd, c, reader, question, "recording "+name)
}

func (r *recording) from(cmd *cobra.Command, c *cluster.Cluster, reader cluster.Reader, question []string,
	begun string,
) error {
	return r.write(cmd, func(out io.Writer) error {
		out = &first{out, func() {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s on %s for %s; Ctrl-C ends it\n", begun, reader.Node, text.Short(r.length))
		}}
		ctx, cancel := context.WithTimeout(cmd.Context(), r.length+r.limits.Patience+10*time.Second)
		defer cancel()
		err := c.Ask(ctx, reader, question, cluster.Limited(out, recordingMost))
		if cmd.Context().Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("node %s: %w", reader.Node, err)
		}
		return nil
	})
}

func nodeName(name string) (string, bool) {
	for _, prefix := range []string{"node/", "nodes/", "no/"} {
		if node, ok := strings.CutPrefix(name, prefix); ok {
			return node, true
		}
	}
	return "", false
}

func nodeOf(ctx context.Context, c *cluster.Cluster, namespace, name string) (string, error) {
	pod, err := c.Pod(ctx, namespace, name)
	switch {
	case cluster.NotFound(err):
		return "", fmt.Errorf("there is no pod %s in namespace %s; for a node, say node/%s", name, namespace, name)
	case err != nil:
		return "", err
	case pod.Spec.NodeName == "":
		return "", fmt.Errorf("pod %s/%s is on no node yet: there is nothing to record", namespace, name)
	}
	return pod.Spec.NodeName, nil
}

func (r *recording) write(cmd *cobra.Command, fill func(io.Writer) error) (err error) {
	if r.file == "-" {
		if terminal.Is(cmd.OutOrStdout()) {
			return command.Usagef("a recording goes to standard output: redirect it to a file")
		}
		return fill(cmd.OutOrStdout())
	}
	flag := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if r.overwrite {
		flag = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(r.file, flag, 0o600)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s exists: --overwrite replaces it, -o names another", r.file)
	}
	if err != nil {
		return err
	}
	got := &counted{w: f}
	buffered := bufio.NewWriter(got)
	out, done := io.Writer(buffered), buffered.Flush
	if strings.HasSuffix(r.file, ".gz") {
		zip := gzip.NewWriter(buffered)
		out, done = zip, func() error { return errors.Join(zip.Close(), buffered.Flush()) }
	}
	plain := &counted{w: out}
	err = errors.Join(fill(plain), done(), f.Close())
	if plain.n == 0 {
		if err == nil {
			err = errors.New("nothing was recorded, so there is no file")
		}
		return errors.Join(err, os.Remove(r.file))
	}
	if err == nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: %d KB; cniscope show %s draws it\n", r.file, (got.n+1023)/1024, r.file)
	}
	return err
}

type first struct {
	io.Writer
	begun func()
}

func (f *first) Write(p []byte) (int, error) {
	if f.begun != nil {
		f.begun()
		f.begun = nil
	}
	return f.Writer.Write(p)
}

type counted struct {
	w io.Writer
	n int
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += n
	return n, err
}
