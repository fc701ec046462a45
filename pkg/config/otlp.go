package config

import (
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// OTLP is the destination that speaks OTLP over gRPC.
type OTLP struct {
	// Endpoint is http://host:port, https://host:port or host:port; empty where
	// nothing is sent. See Target.
	Endpoint string
	// Insecure says that a bare host:port is spoken to without TLS.
	Insecure bool
	// CA, Cert and Key are PEM files: whom to trust (empty: the system's roots), and
	// who cniscope is to a server that asks.
	CA, Cert, Key string
	// Headers are sent with every request; the names are lower-case.
	Headers map[string]Secret
	// Compression is "gzip" or "none".
	Compression string
	// Timeout is for one request.
	Timeout time.Duration
}

// Target returns what is dialled and whether it is in plain text: http:// is
// plain, https:// is TLS, a bare host:port is TLS unless Insecure says otherwise
// (OpenTelemetry specification, protocol/exporter: a scheme is stronger than
// "insecure"). Empty where no endpoint is set.
func (o OTLP) Target() (hostPort string, plain bool) {
	if rest, ok := strings.CutPrefix(o.Endpoint, "http://"); ok {
		return strings.TrimSuffix(rest, "/"), true
	}
	if rest, ok := strings.CutPrefix(o.Endpoint, "https://"); ok {
		return strings.TrimSuffix(rest, "/"), false
	}
	return o.Endpoint, o.Insecure
}

// endpoint checks what Target takes apart.
func endpoint() kind[string] {
	return words(checkEndpoint)
}

const endpointRemedy = `write "http://host:port", or "https://host:port" for TLS; the port of OTLP over gRPC is mostly 4317`

func checkEndpoint(s string) *fault {
	if s == "" {
		return nil
	}
	rest := s
	if scheme, after, ok := strings.Cut(s, "://"); ok {
		if scheme != "http" && scheme != "https" {
			return wrong(endpointRemedy, "%s:// is not spoken", quoted(scheme))
		}
		u, err := url.Parse(s)
		if err != nil {
			return wrong(endpointRemedy, "is not an address")
		}
		if u.User != nil {
			return wrong("send it as a header, in headers", "holds a user name or password")
		}
		if u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
			return wrong(endpointRemedy, "has a path: OTLP over gRPC has none, only OTLP over HTTP does")
		}
		rest = strings.TrimSuffix(after, "/")
	}
	if strings.Contains(rest, "@") {
		return wrong("send it as a header, in headers", "holds a user name or password")
	}
	host, port, err := net.SplitHostPort(rest)
	if err != nil || host == "" {
		return wrong(endpointRemedy, "%s is not a host and a port", quoted(s))
	}
	if strings.ContainsAny(host, "/?#%\\ ") {
		return wrong(endpointRemedy, "%s is not a host and a port", quoted(s))
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return wrong(endpointRemedy, "%s is not a port", quoted(port))
	}
	return nil
}
