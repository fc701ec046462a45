package main

import (
	"bufio"
	"context"
	"errors"
	"io"
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
	return reviewAs(ctx, config, token)
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
