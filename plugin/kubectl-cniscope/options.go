package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/cniscope/cniscope/pkg/command"
	"github.com/cniscope/cniscope/pkg/fleet/cluster"
	"github.com/cniscope/cniscope/pkg/fleet/fanout"
	"github.com/cniscope/cniscope/pkg/terminal"
)

type options struct {
	kube   clientcmd.ClientConfig
	home   string
	nodes  []string
	limits fanout.Limits
	format string
	color  string
}

func newOptions() *options {
	return &options{
		home: os.Getenv("CNISCOPE_NAMESPACE"),
		// A query costs an API server about 20 ms; a dead node times out.
		limits: fanout.Limits{AtOnce: 32, Patience: 5 * time.Second}, format: "text",
	}
}

func (o *options) flags(set *pflag.FlagSet) {
	set.StringVar(&o.home, "cniscope-namespace", o.home,
		"where cniscope is installed (default $CNISCOPE_NAMESPACE, else \""+cluster.DefaultNamespace+"\", "+
			"else wherever it is found)")
	set.StringSliceVar(&o.nodes, "node", nil, "query these nodes only")
	set.IntVar(&o.limits.AtOnce, "concurrency", o.limits.AtOnce, "how many nodes are queried at the same time")
	set.DurationVar(&o.limits.Patience, "node-timeout", o.limits.Patience, "how long to wait for the answer of one node")
	set.StringVar(&o.color, "color", "auto", "auto, always or never")
	set.StringVarP(&o.format, "output", "o", o.format, "text or json")
	kube := pflag.NewFlagSet("", pflag.ContinueOnError)
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.DefaultClientConfig = &clientcmd.DefaultClientConfig
	kube.StringVar(&rules.ExplicitPath, "kubeconfig", "", "Path to the kubeconfig file to use for CLI requests.")
	names := clientcmd.RecommendedConfigOverrideFlags("")
	names.ClusterOverrideFlags.APIServer.ShortName = "s"
	names.AuthOverrideFlags.Username.LongName, names.AuthOverrideFlags.Password.LongName = "", ""
	overrides := &clientcmd.ConfigOverrides{ClusterDefaults: clientcmd.ClusterDefaults}
	clientcmd.BindOverrideFlags(overrides, kube, names)
	extra := map[string][]string{}
	overrides.AuthInfo.ImpersonateUserExtra = extra
	kube.Func("as-user-extra", "User extras to impersonate for the operation, this flag can be repeated",
		func(s string) error {
			name, value, _ := strings.Cut(s, "=")
			extra[name] = append(extra[name], value)
			return nil
		})
	o.kube = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	kube.VisitAll(func(f *pflag.Flag) {
		f.Hidden = !slices.Contains([]string{"context", "kubeconfig", "namespace"}, f.Name)
	})
	set.AddFlagSet(kube)
}

func (o *options) nodeArgs(_ *cobra.Command, args []string) error {
	for _, arg := range args {
		node, is := strings.CutPrefix(arg, "node/")
		if !is {
			return command.Usagef("%s: want node/NODE; for a pod use --pod", arg)
		}
		o.nodes = append(o.nodes, node)
	}
	return nil
}

// briefly omits the root's flags from the help of commands.
func briefly(root *cobra.Command) {
	usage := root.UsageFunc()
	root.SetUsageFunc(func(c *cobra.Command) error {
		if !c.HasParent() {
			return usage(c)
		}
		c.InheritedFlags().VisitAll(func(f *pflag.Flag) {
			f.Hidden = !slices.Contains([]string{"output", "namespace", "node"}, f.Name)
		})
		err := usage(c)
		_, _ = fmt.Fprintf(c.OutOrStderr(), "\nUse \"%s options\" for the flags that every command accepts.\n",
			root.DisplayName())
		return err
	})
}

func optionsCmd() *cobra.Command {
	return &cobra.Command{
		Use: "options", Short: "List the flags that every command accepts", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all := pflag.NewFlagSet("", pflag.ContinueOnError)
			newOptions().flags(all)
			all.VisitAll(func(f *pflag.Flag) { f.Hidden = false })
			_, err := fmt.Fprint(cmd.OutOrStdout(), command.Usages(all))
			return err
		},
	}
}

func (o *options) check() error {
	switch {
	case o.format != "text" && o.format != "json":
		return command.Usagef("--output %s: want text or json", o.format)
	case !slices.Contains(terminal.Modes(), o.color):
		return command.Usagef("--color %s: want auto, always or never", o.color)
	case o.limits.AtOnce < 1 || o.limits.AtOnce > 256:
		return command.Usagef("--concurrency %d: want 1 to 256", o.limits.AtOnce)
	case o.limits.Patience <= 0:
		return command.Usagef("--node-timeout %s: want more than 0, such as 5s", o.limits.Patience)
	}
	return nil
}

func (o *options) namespace() (string, error) {
	name, _, err := o.kube.Namespace()
	if err != nil {
		return "", fmt.Errorf("cannot read the kubeconfig: %w", err)
	}
	return name, nil
}

func (o *options) connect() (*cluster.Cluster, error) {
	config, err := o.kube.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("cannot read the kubeconfig: %w", err)
	}
	config.UserAgent = "kubectl-cniscope/" + thisBuild().Version
	return cluster.New(config)
}

type session struct {
	*options
	*cluster.Cluster
	readers  []cluster.Reader
	within   string
	progress *progress
}

// open finds the sidecars to query. within limits answers to a namespace; empty for all.
func (o *options) open(ctx context.Context, c *cluster.Cluster, within string, diagnostics io.Writer) (*session,
	error,
) {
	readers, err := c.Readers(ctx, o.home)
	if err != nil {
		return nil, err
	}
	s := &session{options: o, Cluster: c, readers: readers, within: within, progress: newProgress(diagnostics)}
	return s, s.choose()
}

func (s *session) choose() error {
	if len(s.nodes) == 0 {
		return nil
	}
	unknown := slices.DeleteFunc(slices.Clone(s.nodes), func(node string) bool {
		return slices.ContainsFunc(s.readers, func(r cluster.Reader) bool { return r.Node == node })
	})
	if len(unknown) > 0 {
		return fmt.Errorf("no cniscope pod found on node %s; kubectl get pods -n %s -l %s -o wide lists them",
			strings.Join(unknown, ", "), s.readers[0].Namespace, cluster.Selector)
	}
	s.readers = slices.DeleteFunc(slices.Clone(s.readers), func(r cluster.Reader) bool {
		return !slices.Contains(s.nodes,
			r.Node)
	})
	return nil
}

func (s *session) reader(node string) (cluster.Reader, error) {
	for _, r := range s.readers {
		if r.Node == node {
			return r, nil
		}
	}
	return cluster.Reader{}, fmt.Errorf("no cniscope pod found on node %s; kubectl get pods -A -l %s -o wide "+
		"lists them", cmp.Or(node, "?"), cluster.Selector)
}

func (s *session) question(words ...string) []string {
	if s.within != "" {
		words = append(words, "--namespace", s.within)
	}
	return words
}

func (s *session) about() string {
	if s.within == "" {
		return "all namespaces"
	}
	return "namespace " + s.within
}

func (o *options) runs(do func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := o.check(); err != nil {
			return err
		}
		return do(cmd, args)
	}
}
