package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/events/v1"
	"k8s.io/client-go/rest"

	"github.com/cniscope/cniscope/pkg/command"
	"github.com/cniscope/cniscope/pkg/fleet/events"
	"github.com/cniscope/cniscope/pkg/fleet/kube"
	"github.com/cniscope/cniscope/pkg/redact"
)

func serveCmd() *cobra.Command {
	tell := false
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Wait for queries, and write Kubernetes Events if enabled",
		Long: `Run until a signal, so that "kubectl exec" can run ask in this container.

With --events, serve writes Kubernetes Events for pods with a slow or failed network setup: up to ten a minute, only for
certain causes, and without data about other pods.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log := slog.New(slog.NewTextHandler(os.Stderr, nil))
			if !tell {
				log.Info("ready for queries")
				<-cmd.Context().Done()
				return nil
			}
			return tellPods(cmd.Context(), log)
		},
	}
	cmd.Flags().BoolVar(&tell, "events", tell, "write Events")
	return cmd
}

const writing = 10 * time.Second

func tellPods(ctx context.Context, log *slog.Logger) error {
	config, err := rest.InClusterConfig()
	if err != nil {
		return fmt.Errorf("cannot write Events without the Kubernetes API: %w", err)
	}
	config.Timeout = writing
	config.UserAgent = "cniscope-reader"
	config.Dial = dialer(node().APIServer)
	api, err := eventsOf(config)
	if err != nil {
		return fmt.Errorf("cannot write Events without the Kubernetes API: %w", err)
	}
	w := &writer{api: api, as: config, node: setting("NODE_NAME", ""), log: log}
	if w.node == "" {
		return command.Usagef("serve --events: NODE_NAME is not set; it is the node's name, spec.nodeName of the pod")
	}
	log.Info("ready for queries, writing Events", "node", w.node)
	lines := make(chan batch)
	follower := follower{node: node(), log: log}
	go follower.follow(ctx, lines)
	return w.tell(ctx, events.NewLedger(), lines)
}

// eventsOf sends each request once: the ledger retries, not client-go.
func eventsOf(config *rest.Config) (*rest.RESTClient, error) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return once{next} })
	return kube.Client(config, v1.SchemeGroupVersion, v1.AddToScheme)
}

type once struct{ next http.RoundTripper }

func (o once) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := o.next.RoundTrip(r)
	if answer != nil {
		answer.Header.Del("Retry-After")
	}
	return answer, err
}

// connecting bounds the service "kubernetes" if the kubelet's API server is known.
const connecting = time.Second

// dialer tries the service "kubernetes", then the kubelet's API server, which needs no service network. The
// certificate is checked for the service.
func dialer(
	kubelets func(context.Context) (string, error),
) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		var d net.Dialer
		other, unknown := kubelets(ctx)
		if unknown != nil || other == address {
			c, err := d.DialContext(ctx, network, address)
			if err != nil && unknown != nil {
				err = fmt.Errorf("%w; the API server of the kubelet is unknown: %w", err, unknown)
			}
			return c, err
		}
		short, cancel := context.WithTimeout(ctx, connecting)
		defer cancel()
		c, err := d.DialContext(short, network, address)
		if err == nil {
			return c, nil
		}
		c, also := d.DialContext(ctx, network, other)
		if also != nil {
			return nil, fmt.Errorf("%w; the API server of the kubelet: %w", err, also)
		}
		return c, nil
	}
}

func told(config *rest.Config) *redact.Call {
	renewed, _ := os.ReadFile(config.BearerTokenFile) // kubelet renews it each hour
	return redact.Ours(config.BearerToken, string(renewed))
}
