// Package kube is a client of a real kube-apiserver, for tests.
package kube

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

// API is a client of an API server's REST interface.
type API struct {
	url, token string
	client     *http.Client
}

// New returns a client of the API server at host:port, with a token.
func New(address, token string) *API {
	return &API{
		url: "https://" + address, token: token,
		client: &http.Client{
			Timeout:   30 * time.Second,
			Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, //nolint:gosec // see above
		},
	}
}

type refusal struct {
	Code    int
	Reason  string
	Message string
}

func (r *refusal) Error() string { return fmt.Sprintf("%d %s: %s", r.Code, r.Reason, r.Message) }

// NotFound reports whether the API server has no such object.
func NotFound(err error) bool {
	var r *refusal
	return errors.As(err, &r) && r.Code == http.StatusNotFound
}

// AlreadyExists reports whether the API server already has such an object.
func AlreadyExists(err error) bool {
	var r *refusal
	return errors.As(err, &r) && r.Code == http.StatusConflict
}

// Answer is the API server's answer to a granted request.
type Answer struct {
	Body     []byte
	Warnings []string
}

// Do sends a request. The body is YAML or JSON.
func (a *API) Do(ctx context.Context, method, path string, body []byte) (Answer, error) {
	request, err := http.NewRequestWithContext(ctx, method, a.url+path, bytes.NewReader(body))
	if err != nil {
		return Answer{}, err
	}
	request.Header.Set("Authorization", "Bearer "+a.token)
	request.Header.Set("Accept", "application/json")
	request.Header.Set("Content-Type", "application/yaml")
	response, err := a.client.Do(request)
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return Answer{}, err
	}
	if response.StatusCode >= 300 {
		no := &refusal{Code: response.StatusCode}
		if json.Unmarshal(text, no) != nil || no.Message == "" {
			no.Message = string(text)
		}
		return Answer{}, fmt.Errorf("%s %s: %w", method, path, no)
	}
	return Answer{Body: text, Warnings: response.Header.Values("Warning")}, nil
}

// Get decodes an object.
func (a *API) Get(ctx context.Context, path string, into any) error {
	got, err := a.Do(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	return json.Unmarshal(got.Body, into)
}

// Create creates an object from a Go value.
func (a *API) Create(ctx context.Context, path string, object any) error {
	body, err := json.Marshal(object)
	if err != nil {
		return err
	}
	_, err = a.Do(ctx, http.MethodPost, path, body)
	return err
}
