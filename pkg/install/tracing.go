package install

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// tracing is where containerd exports its own spans to.
type tracing struct{ endpoint, protocol string }

// parseTracing checks an endpoint. containerd takes a URL; by convention port 4317 speaks
// gRPC, every other OTLP by HTTP (and cniscope's relay both).
func parseTracing(endpoint string) (tracing, error) {
	u, err := url.Parse(endpoint)
	if err == nil && (u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		err = errors.New("not a URL")
	}
	if err != nil || strings.ContainsAny(endpoint, "\"'\\ \t\n\r") {
		return tracing{}, fmt.Errorf("--containerd-tracing %q: want a URL as http://127.0.0.1:4317, or off", endpoint)
	}
	if u.Port() == "4317" {
		return tracing{endpoint, "grpc"}, nil
	}
	return tracing{endpoint, "http/protobuf"}, nil
}

// environment is what every containerd since 1.7 understands, and the only way since 2.0.
func (t tracing) environment() []string {
	return []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + t.endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL=" + t.protocol}
}

// unitDropIn has systemd give that to containerd.
func (t tracing) unitDropIn() string {
	var b strings.Builder
	b.WriteString("# Written by cniscope install: containerd exports its own spans.\n[Service]\n")
	for _, v := range t.environment() {
		// systemd takes %x for a specifier (systemd.unit(5)).
		fmt.Fprintf(&b, "Environment=\"%s\"\n", strings.ReplaceAll(v, "%", "%%"))
	}
	return b.String()
}

// sections are the same for containerd 1.7's configuration, with what is configured there
// already.
func (t tracing) sections(c *configuration) map[string]any {
	otlp, _ := c.plugin(otlpPlugin)
	sampling, _ := c.plugin(tracingPlugin)
	otlp["endpoint"], otlp["protocol"] = t.endpoint, t.protocol
	if _, ok := sampling["sampling_ratio"]; !ok {
		// Calls whose request is not sampled have no span that ours could be under.
		sampling["sampling_ratio"] = 1.0
	}
	return map[string]any{otlpPlugin: otlp, tracingPlugin: sampling}
}
