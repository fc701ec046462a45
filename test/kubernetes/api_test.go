//go:build linux

package kubernetes

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// api is a client of the apiserver: its REST interface, nothing around it.
type api struct {
	url, token string
	client     *http.Client
}

func newAPI(address, token string) *api {
	return &api{
		url: "https://" + address, token: token,
		// The apiserver made its own certificate a moment ago, and listens on loopback.
		client: &http.Client{
			Timeout:   30 * time.Second,
			Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, //nolint:gosec // see above
		},
	}
}

// refusal is the apiserver's no.
type refusal struct {
	Code    int
	Reason  string
	Message string
}

func (r *refusal) Error() string { return fmt.Sprintf("%d %s: %s", r.Code, r.Reason, r.Message) }

func notFound(err error) bool {
	var r *refusal
	return errors.As(err, &r) && r.Code == http.StatusNotFound
}

func alreadyExists(err error) bool {
	var r *refusal
	return errors.As(err, &r) && r.Code == http.StatusConflict
}

// answer is what the apiserver says to a request that it grants.
type answer struct {
	body     []byte
	warnings []string
}

// do sends one request. The body is YAML or JSON: to the apiserver JSON is YAML.
func (a *api) do(ctx context.Context, method, path string, body []byte) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, method, a.url+path, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	request.Header.Set("Authorization", "Bearer "+a.token)
	request.Header.Set("Accept", "application/json")
	request.Header.Set("Content-Type", "application/yaml")
	response, err := a.client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, err
	}
	if response.StatusCode >= 300 {
		no := &refusal{Code: response.StatusCode}
		if json.Unmarshal(text, no) != nil || no.Message == "" {
			no.Message = string(text)
		}
		return answer{}, fmt.Errorf("%s %s: %w", method, path, no)
	}
	return answer{body: text, warnings: response.Header.Values("Warning")}, nil
}

// get decodes one object.
func (a *api) get(ctx context.Context, path string, into any) error {
	got, err := a.do(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	return json.Unmarshal(got.body, into)
}

// create makes one object from a Go value.
func (a *api) create(ctx context.Context, path string, object any) error {
	body, err := json.Marshal(object)
	if err != nil {
		return err
	}
	_, err = a.do(ctx, http.MethodPost, path, body)
	return err
}
