package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"k8s.io/client-go/rest"

	"github.com/cniscope/cniscope/pkg/redact"
)

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
