package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// textOf returns the value for the check that the tag is names.
func textOf(s spec) value {
	if len(s.words) > 0 {
		return oneOf("write one of "+quotedList(s.words), s.words)
	}
	const anyText = `{"$ref": "#/definitions/text"}`
	system := s.system
	switch s.check {
	case "path":
		return s.orEmpty("an absolute path", `{"$ref": "#/definitions/path"}`, system.path)
	case "socket":
		return s.orEmpty("an absolute path", `{"$ref": "#/definitions/path"}`, system.endpoint)
	case "endpoint":
		const possible = "http://HOST[:PORT], https://HOST[:PORT], each with a path for OTLP over HTTP, or HOST:PORT"
		v := s.orEmpty(possible, `{"$ref": "#/definitions/endpoint"}`, checkEndpoint)
		parse := v.parse
		v.parse = func(decoded any) (any, []*Problem) {
			s, faults := parse(decoded)
			if endpoint := s.(string); (OTLP{Endpoint: endpoint}).Path() == "/" {
				s = strings.TrimSuffix(endpoint, "/") // no path: gRPC
			}
			return s, faults
		}
		return v
	case "listen":
		return s.orEmpty("HOST:PORT or :PORT", anyText, checkListen)
	case "loopback":
		const schema = `{"type": "string", "pattern": "^((127\\.[0-9.]+|\\[::1\\]):[0-9]+)?$"}`
		return s.orEmpty("a loopback address and a port", schema, checkLoopback)
	case "group":
		return s.orEmpty("the name or number of a group", anyText, checkGroup)
	case "pattern":
		return str("pattern", anyText, checkPattern)
	case "program":
		return str("pattern of an absolute path", anyText, system.program)
	}
	return str("text", anyText, func(string) *Problem { return nil })
}

// orEmpty accepts an empty text if the default is empty.
func (s spec) orEmpty(possible, schema string, check func(string) *Problem) value {
	if s.defaultValue != "" {
		return str(possible, schema, check)
	}
	return str(possible+", or empty", strings.Replace(schema, "/path", "/pathOrEmpty", 1), func(s string) *Problem {
		if s == "" {
			return nil
		}
		return check(s)
	})
}

func checkPattern(s string) *Problem {
	if s == "" {
		return wrong(`write a pattern, such as "kube-*"`, "is empty")
	}
	if _, err := path.Match(s, ""); err != nil {
		return wrong(`close every [ and end no pattern in \`, "%s is not a pattern", quoted(s))
	}
	return nil
}

const endpointRemedy = `write "http://host:4317", or "http://host:4318/v1/traces" for OTLP over HTTP; https:// for TLS`

func checkEndpoint(s string) *Problem {
	if strings.ContainsAny(s, "${}") {
		return wrong("write the address itself; without endpoint here, the variable OTEL_EXPORTER_OTLP_ENDPOINT says it",
			"has a variable, and none is replaced in this file")
	}
	rest := s
	if scheme, after, ok := strings.Cut(s, "://"); ok {
		if scheme != "http" && scheme != "https" {
			return wrong(likely(after), "%s is not supported", quoted(scheme+"://"))
		}
		u, err := url.Parse(s)
		if err != nil {
			return wrong(endpointRemedy, "is not an address")
		}
		if u.User != nil {
			return wrong("send it as a header, in headers", "holds a user name or password")
		}
		if u.RawQuery != "" || u.Fragment != "" {
			return wrong(endpointRemedy, "has more than a path behind its port")
		}
		rest, _, _ = strings.Cut(after, "/")
		rest = withPort(scheme, rest)
	}
	if strings.Contains(rest, "@") {
		return wrong("send it as a header, in headers", "holds a user name or password")
	}
	if _, _, path := strings.Cut(rest, "/"); path {
		return wrong("write "+quote("http://"+rest)+", or https:// for TLS", "has a path and no scheme")
	}
	return checkHostPort(s, rest)
}

// checkHostPort checks rest, which is s without scheme.
func checkHostPort(s, rest string) *Problem {
	host, port, err := net.SplitHostPort(rest)
	if err != nil || host == "" || strings.ContainsAny(host, "/?#%\\ ") {
		return wrong(likely(strings.TrimPrefix(s, "http://")), "%s is not a host and a port", quoted(s))
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return wrong(endpointRemedy, "%s is not a port", quoted(port))
	}
	return nil
}

func isHostPort(s string) bool {
	host, port, err := net.SplitHostPort(s)
	n, bad := strconv.ParseUint(port, 10, 16)
	return err == nil && bad == nil && n > 0 && host != "" && !strings.ContainsAny(host, "/?#%\\@ ")
}

func likely(address string) string {
	scheme, rest := "http://", address
	if after, ok := strings.CutPrefix(address, "https://"); ok {
		scheme, rest = "https://", after
	}
	if isHostPort(rest) {
		return "write " + quote(scheme+rest)
	}
	if strings.Trim(rest, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") == "" && rest != "" {
		return "write " + quote(scheme+rest+":4317") + " (the usual port)"
	}
	return endpointRemedy
}

// otherPorts lists ports not of OTLP over gRPC: https://opentelemetry.io/docs/specs/otlp/#otlphttp-default-port, and
// each program's documentation.
var otherPorts = map[string]string{
	"80":    "web pages",
	"4318":  "OTLP over HTTP",
	"14268": "Jaeger's own protocol",
	"14250": "Jaeger's own protocol",
	"16686": "Jaeger's page",
	"9411":  "Zipkin's protocol",
	"3200":  "Tempo's queries",
	"3100":  "Loki's",
	"9090":  "Prometheus' queries",
	"13133": "the Collector's health check",
	"8888":  "the Collector's own metrics",
}

// wrongPort describes the protocol of an endpoint's wrong port, with a remedy.
func wrongPort(endpoint string) (what, remedy string) {
	o := OTLP{Endpoint: endpoint}
	target, _ := o.Target()
	host, port, err := net.SplitHostPort(target)
	if err != nil {
		return "", ""
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return "", ""
	}
	scheme := "http://"
	if strings.HasPrefix(endpoint, "https://") {
		scheme = "https://"
	}
	speaks, like := "gRPC, since its endpoint has no path", scheme+net.JoinHostPort(host, "4317")
	spoken, ok := otherPorts[strconv.FormatUint(n, 10)]
	switch {
	case o.Path() != "" && n == 4317:
		spoken, ok = "OTLP over gRPC", true
	case o.Path() == "" && n == 4318:
		like = scheme + net.JoinHostPort(host, "4318") + "/v1/traces"
	case o.Path() != "" && (n == 80 || n == 4318):
		return "", ""
	}
	if !ok {
		return "", ""
	}
	if o.Path() != "" {
		speaks = "HTTP, since its endpoint has a path"
	}
	what = "port %d is usually that of %s, and cniscope speaks OTLP over %s: no span would arrive"
	return fmt.Sprintf(what, n, spoken, speaks),
		"write " + quote(like) + " (the usual port)"
}

const listenRemedy = `write "127.0.0.1:9471", or ":9471" for every address of the node`

func checkListen(s string) *Problem {
	host, port, err := net.SplitHostPort(s)
	if err != nil || strings.ContainsAny(s, "/?#@\\ ") {
		if n, bare := strconv.ParseUint(s, 10, 16); bare == nil {
			remedy := fmt.Sprintf(`write "127.0.0.1:%d", or ":%d" for every address of the node`, n, n)
			return wrong(remedy, "is a port without an address")
		}
		return wrong(listenRemedy, "%s is not a host and a port", quoted(s))
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return wrong(listenRemedy, "%s is not a port", quoted(port))
	}
	if host == "*" {
		return wrong("write "+quote(":"+port)+" for every address of the node", "%s is no address", quoted(host))
	}
	return nil
}

func checkLoopback(s string) *Problem {
	const remedy = `write "127.0.0.1:4319"`
	a, err := netip.ParseAddrPort(s)
	if host, port, split := net.SplitHostPort(s); err != nil && split == nil && (host == "" || host == "localhost") {
		return wrong("write "+quote("127.0.0.1:"+port), "%s does not say which address", quoted(s))
	}
	if err != nil || a.Port() == 0 {
		return wrong(remedy, "%s is not an IP and a port", quoted(s))
	}
	if !a.Addr().IsLoopback() {
		return wrong(fmt.Sprintf(`write "127.0.0.1:%d"`, a.Port()), "%s can be reached by others", quoted(s))
	}
	return nil
}

func checkGroup(s string) *Problem {
	if n, err := strconv.ParseUint(s, 10, 32); err == nil && n < 1<<32-1 { // the highest means "no change"
		return nil
	}
	if len(s) <= 32 && groupName.MatchString(s) {
		return nil
	}
	return wrong(`write a group's name, such as "cniscope", or its number, such as "60947"`,
		"%s is not a group", quoted(s))
}

var groupName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*\$?$`)
