package doctor

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
)

// endpointTakesSpans: a test span was sent to the endpoint, and it took it.
func endpointTakesSpans(f *fact.Facts) ([]Finding, error) {
	if f.Options.Endpoint == "" {
		return nil, notApplicable("no OTLP endpoint is set ([export.otlp] endpoint)")
	}
	if f.Sent.Err == nil {
		return nil, nil
	}
	return []Finding{{
		Level: Warning, Summary: fact.Sayf("the OTLP endpoint %s does not take spans", f.Options.Endpoint),
		Evidence: []string{fact.Sayf("a test span: %s", f.Sent.Err)},
		Remedy:   []string{remedyForEndpoint(f.Sent.Err)},
	}}, nil
}

func remedyForEndpoint(err error) string {
	said := err.Error()
	switch code := status.Code(err); {
	case code == codes.Unauthenticated || code == codes.PermissionDenied:
		return "set what it wants to see in [export.otlp] headers, or cert and key"
	case code == codes.Unimplemented || strings.Contains(said, "HTTP/1.1") || strings.Contains(said, "404"):
		return "is that OTLP over gRPC? its port is mostly 4317; 4318 is OTLP over HTTP, which is not spoken"
	case strings.Contains(said, "tls:") || strings.Contains(said, "x509:") || strings.Contains(said, "first record does not look like"):
		return "see [export.otlp]: http:// is plain text, https:// is TLS; ca names whom to trust"
	case strings.Contains(said, "no such host"):
		return "the name is not known here: a Service's name is known to pods only, unless this node asks the cluster's DNS"
	case errors.Is(err, context.DeadlineExceeded) || code == codes.DeadlineExceeded || code == codes.Unavailable:
		return "is the Collector or the backend up, and does a firewall let this node reach it? Until then operations wait in memory, or in [export.spool]"
	}
	return "see the endpoint's own log"
}
