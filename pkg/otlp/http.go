package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	rpc "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Protobuf is the content type of OTLP/HTTP.
const Protobuf = "application/x-protobuf"

const maxAnswer = 64 << 10

type overHTTP struct {
	url     string
	headers map[string]string
	gzip    bool
	client  *http.Client
}

func newHTTP(o Options) overHTTP {
	transport := &http.Transport{
		TLSClientConfig: o.TLS, Protocols: new(http.Protocols), TLSHandshakeTimeout: 10 * time.Second,
		IdleConnTimeout: 2 * time.Minute, MaxResponseHeaderBytes: maxAnswer,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, network, address)
			if err == nil && o.Admits != nil {
				if err = o.Admits(c.RemoteAddr()); err != nil {
					_ = c.Close()
				}
			}
			return c, err
		},
	}
	transport.Protocols.SetHTTP1(true)
	scheme := "http://"
	if o.TLS != nil {
		transport.Protocols.SetHTTP2(true)
		transport.Proxy = http.ProxyFromEnvironment
		scheme = "https://"
	}
	return overHTTP{scheme + o.Endpoint + o.Path, o.Headers, o.Gzip, &http.Client{
		Transport: transport,
		// Headers are for the configured endpoint only.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func (h overHTTP) export(ctx context.Context, messages [][]byte) (*coltracepb.ExportTraceServiceResponse, error) {
	request, err := h.request(ctx, messages)
	if err != nil {
		return nil, err
	}
	response, err := h.client.Do(request)
	if asked, is := errors.AsType[*url.Error](err); is {
		err = asked.Err // without the URL, which the log has
	}
	if err != nil {
		h.client.CloseIdleConnections() // the connection may be dead
		return nil, status.Error(unreached(err), err.Error())
	}
	defer response.Body.Close()
	// After 101 (Switching Protocols) net/http does not end the read with ctx.
	defer context.AfterFunc(ctx, func() { _ = response.Body.Close() })()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	switch {
	case response.StatusCode/100 != 2:
		return nil, failure(response, body)
	case err != nil:
		return nil, status.Errorf(unreached(err), "read the answer: %s", err)
	}
	answer := &coltracepb.ExportTraceServiceResponse{}
	if proto.Unmarshal(body, answer) != nil { // the spans were accepted nevertheless
		answer.Reset()
	}
	return answer, nil
}

func unreached(err error) codes.Code {
	if errors.Is(err, context.DeadlineExceeded) {
		return codes.DeadlineExceeded
	}
	return codes.Unavailable
}

func (h overHTTP) close() error {
	h.client.CloseIdleConnections()
	return nil
}

func (h overHTTP) request(ctx context.Context, messages [][]byte) (*http.Request, error) {
	body := bytes.Join(messages, nil)
	if h.gzip {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, err := z.Write(body)
		if err := errors.Join(err, z.Close()); err != nil {
			return nil, err
		}
		body = packed.Bytes()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, value := range h.headers {
		request.Header.Set(name, value)
	}
	request.Header.Set("Content-Type", Protobuf)
	request.Header.Set("User-Agent", "cniscope")
	if h.gzip {
		request.Header.Set("Content-Encoding", "gzip")
	}
	return request, nil
}

// failure returns an HTTP error as a gRPC status, since both share the retry rules. The body may be a Status
// (OTLP/HTTP response, "Failures").
func failure(response *http.Response, body []byte) error {
	var said rpc.Status
	if response.Header.Get("Content-Type") != Protobuf || proto.Unmarshal(body, &said) != nil {
		said.Reset()
	}
	s := &rpc.Status{Code: int32(codeOf(response.StatusCode)), Details: said.GetDetails()}
	s.Message = "the endpoint answered HTTP " + response.Status
	if said.GetMessage() != "" {
		s.Message += ": " + said.GetMessage()
	}
	if pause, named := retryAfter(response.Header.Get("Retry-After"), time.Now()); named {
		wait := &errdetails.RetryInfo{RetryDelay: durationpb.New(pause)}
		if with, err := status.FromProto(s).WithDetails(wait); err == nil {
			return with.Err()
		}
	}
	return status.FromProto(s).Err()
}

// codeOf returns the gRPC code of an HTTP status: retryable, about the spans, or about endpoint and credentials.
func codeOf(http int) codes.Code {
	switch http {
	case 400, 413, 422:
		return codes.InvalidArgument
	case 401:
		return codes.Unauthenticated
	case 403:
		return codes.PermissionDenied
	case 404, 405, 415:
		return codes.Unimplemented
	case 500:
		return codes.Internal
	case 508: // from a relay of cniscope
		return codes.FailedPrecondition
	}
	return codes.Unavailable
}

// retryAfter parses seconds or a date (RFC 9110, 10.2.3).
func retryAfter(s string, now time.Time) (pause time.Duration, named bool) {
	if seconds, err := strconv.ParseUint(s, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second, true
	}
	at, err := http.ParseTime(s)
	return max(0, at.Sub(now)), err == nil
}
