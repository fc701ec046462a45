package config

import (
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// endpoint checks what Target takes apart.
func endpoint() kind[string] {
	return str(checkEndpoint)
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

const listenRemedy = `write "127.0.0.1:9471", or ":9471" for every address of the node`

// listen is an address to listen on; empty for none.
func listen() kind[string] {
	return str(func(s string) *fault {
		if s == "" {
			return nil
		}
		host, port, err := net.SplitHostPort(s)
		if err != nil || strings.ContainsAny(host, "/?#@\\ ") {
			return wrong(listenRemedy, "%s is not a host and a port", quoted(s))
		}
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return wrong(listenRemedy, "%s is not a port", quoted(port))
		}
		return nil
	})
}

// loopback is a port of this node that nobody else can reach.
func loopback() kind[string] {
	return str(func(s string) *fault {
		if s == "" {
			return nil
		}
		a, err := netip.ParseAddrPort(s)
		if err != nil || a.Port() == 0 {
			return wrong(`write "127.0.0.1:4319"`, "%s is not an IP and a port", quoted(s))
		}
		if !a.Addr().IsLoopback() {
			return wrong(`write "127.0.0.1:4319"`, "%s can be reached by others", quoted(s))
		}
		return nil
	})
}
