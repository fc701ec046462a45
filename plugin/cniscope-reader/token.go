package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	authentication "k8s.io/api/authentication/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	client "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"

	"github.com/cniscope/cniscope/pkg/fleet"
	"github.com/cniscope/cniscope/pkg/fleet/access"
	"github.com/cniscope/cniscope/pkg/redact"
)

const (
	// arriving bounds the wait for the token, which the client has ready.
	arriving = 10 * time.Second
	// reviewing bounds the token review.
	reviewing = 10 * time.Second
)

// firstLine reads the token. It does not wait for the end of input, which kubectl's exec may keep open.
func firstLine(ctx context.Context, input io.Reader) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, arriving)
	defer cancel()
	came := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(io.LimitReader(input, fleet.MaxToken)).ReadString('\n')
		came <- strings.TrimSpace(line)
	}()
	select {
	case token := <-came:
		if token == "" {
			return "", access.Missing()
		}
		return token, nil
	case <-ctx.Done():
		return "", access.Missing()
	}
}

// review asks the API server about a token.
func review(ctx context.Context, token string) (access.Identity, error) {
	config, err := rest.InClusterConfig()
	if err != nil {
		return access.Identity{}, err
	}
	config.Dial = dialer(node().APIServer)
	return reviewAs(ctx, config, token)
}

// connecting bounds the connection to the service "kubernetes" if the kubelet's API server is known.
const connecting = time.Second

// dialer connects to the service "kubernetes", else to the API server of the kubelet. The kubelet's way works without
// a service network. The certificate is checked as before, for the service.
func dialer(kubelets func(context.Context) (string, error)) func(ctx context.Context, network, address string) (net.Conn, error) {
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

func reviewAs(ctx context.Context, config *rest.Config, token string) (access.Identity, error) {
	config.Timeout = reviewing
	api, err := client.NewForConfig(config)
	if err != nil {
		return access.Identity{}, err
	}
	answer, err := api.TokenReviews().Create(ctx, &authentication.TokenReview{
		Spec: authentication.TokenReviewSpec{Token: token, Audiences: []string{fleet.Audience}},
	}, meta.CreateOptions{})
	told := told(config, token)
	if err != nil {
		return access.Identity{}, errors.New(told.Said(err.Error()))
	}
	id := access.Identity{
		Authenticated: answer.Status.Authenticated, User: answer.Status.User.Username,
		Audiences: answer.Status.Audiences, Error: told.Said(answer.Status.Error),
	}
	if told.Repeats(id.User) { // then it is no ServiceAccount
		id.User = told.Word(id.User)
	}
	return id, nil
}

// told redacts the secrets that the API server receives: the reader's token and others.
func told(config *rest.Config, secrets ...string) *redact.Call {
	renewed, _ := os.ReadFile(config.BearerTokenFile) // kubelet renews it each hour
	return redact.Ours(append(secrets, config.BearerToken, string(renewed))...)
}
