package main

import (
	"context"
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/cniscope/cniscope/test/harness"
)

// Without a service network Events are written to the address that the kubelet uses, for a certificate of the service.
func TestTheAPIServerOfTheKubelet(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	away := harness.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	service := away.Addr().String()
	away.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for name, tt := range map[string]struct {
		host    string
		kubelet func(context.Context) (string, error)
		says    string
	}{
		"the service is away": {
			service,
			func(context.Context) (string, error) { return server.Listener.Addr().String(), nil }, "",
		},
		"the service answers": {
			server.Listener.Addr().String(),
			func(context.Context) (string, error) { return service, nil }, "",
		},
		"nothing else is known": {server.Listener.Addr().String(), func(context.Context) (string, error) {
			return "", errors.New("no kubelet")
		}, ""},
		"both are away": {
			service, func(context.Context) (string, error) { return "127.0.0.1:1", nil },
			"127.0.0.1:1",
		},
		"away, and nothing is known": {service, func(context.Context) (string, error) {
			return "", errors.New("no kubelet")
		}, "no kubelet"},
		"a certificate of other name": {
			"other.invalid:443",
			func(context.Context) (string, error) { return server.Listener.Addr().String(), nil }, "certificate",
		},
	} {
		config := &rest.Config{
			Host: "https://" + tt.host, TLSClientConfig: rest.TLSClientConfig{CAData: ca},
			Dial: dialer(tt.kubelet),
		}
		client := harness.Must(rest.HTTPClientFor(config))(t)
		answer, err := client.Get(config.Host)
		if err == nil {
			answer.Body.Close()
		}
		switch {
		case tt.says == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)):
			t.Errorf("%s: %v", name, err)
		}
	}
}
