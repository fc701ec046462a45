package doctor

import (
	"context"
	"errors"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
)

func clockIsSet(f *fact.Facts) ([]Finding, error) {
	if c := f.Clock.Value; !c.Synchronised {
		return []Finding{Warning.finding(
			"the clock is not synchronized: times of different nodes do not match, and certificates may seem invalid",
			[]string{
				fact.Sayf("adjtimex: STA_UNSYNC, maximum error %s", c.MaxError.Round(time.Millisecond)),
				"the clock shows " + stamp(f.Now),
			}, "systemctl enable --now chrony (or systemd-timesyncd); then check with timedatectl")}, nil
	}
	return nil, nil
}

func kubeletIsHealthy(f *fact.Facts) ([]Finding, error) {
	h := f.Kubelet.Value
	if h.Err == "" && h.Status == 200 {
		return nil, nil
	}
	if h.Err != "" && !h.Running {
		return nil, notApplicable("no kubelet runs here, and none answers at " + h.Address)
	}
	said := fact.Sayf("GET http://%s/healthz: %d %s", h.Address, h.Status, h.Body)
	if h.Err != "" {
		said = fact.Sayf("GET http://%s/healthz: %s", h.Address, h.Err)
	}
	return []Finding{Problem.finding("kubelet is not healthy", []string{said},
		"systemctl status kubelet; journalctl -u kubelet -e",
		"if kubelet serves healthz at another address, run doctor with --kubelet HOST:PORT")}, nil
}

func namesResolve(f *fact.Facts) ([]Finding, error) {
	d := f.DNS.Value
	switch {
	case d.Server == "":
		return nil, notApplicable("no kubelet runs here, or the kubelet's configuration names no cluster DNS")
	case d.Err+d.Said == "":
		return nil, nil
	}
	said, remedy := "the DNS server does not answer: ", []string{
		"kubectl -n kube-system get pods -l k8s-app=kube-dns -o wide; read the log of a pod that is not ready",
		"if these pods are ready, " + see(f, "let the node's firewall pass packets to pods", "service-proxies",
			"service-rules", "forwarding"),
	}
	if d.Said != "" {
		said, remedy = "the DNS server answers with an error: ", []string{
			"compare clusterDomain in kubelet's configuration (kubeadm: /var/lib/kubelet/config.yaml) with the zone in " +
				"CoreDNS's Corefile: kubectl -n kube-system get configmap coredns -o yaml",
			"read the server's log: kubectl -n kube-system logs -l k8s-app=kube-dns --tail=100",
		}
	}
	return []Finding{Warning.finding(fact.Sayf("the cluster's DNS at %s does not resolve %s", d.Server, d.Name),
		[]string{said + d.Err + d.Said}, remedy...)}, nil
}

func endpointTakesSpans(f *fact.Facts) ([]Finding, error) {
	if f.Options.Endpoint == "" {
		return nil, notApplicable("no OTLP endpoint is set ([export.otlp] endpoint)")
	}
	if f.Sent.Err == nil {
		return nil, nil
	}
	summary := "the OTLP endpoint %s rejects spans"
	if unreachable(f.Sent.Err) {
		summary = "nothing answers at the OTLP endpoint %s"
	}
	return []Finding{Warning.finding(fact.Sayf(summary, f.Options.Endpoint),
		[]string{fact.Sayf("doctor sent a test span: %s", f.Sent.Err)}, remedyForEndpoint(f.Sent.Err))}, nil
}

func unreachable(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || status.Code(err) == codes.DeadlineExceeded ||
		strings.Contains(err.Error(), "dial ")
}

func remedyForEndpoint(err error) string {
	said := err.Error()
	switch code := status.Code(err); {
	case code == codes.Unauthenticated || code == codes.PermissionDenied:
		return "set the credentials that the endpoint requires: [export.otlp] headers, or cert and key"
	case code == codes.Unimplemented || strings.Contains(said, "HTTP/1.") || strings.Contains(said, "malformed HTTP"):
		return "set endpoint to http://HOST:4317 for OTLP over gRPC, or to http://HOST:4318/v1/traces for OTLP over HTTP, " +
			"with the endpoint's own port and path"
	case strings.Contains(said, "HTTPS client") || strings.Contains(said, "tls:") || strings.Contains(said, "x509:") ||
		strings.Contains(said, "first record does not look like"):
		return "set endpoint to http:// for plain text or https:// for TLS, and ca to the authority that signed the " +
			"certificate"
	case strings.Contains(said, "no such host"):
		return "set endpoint to an address or a name that this node can resolve: only pods resolve a Service's name, " +
			"unless the node uses the cluster's DNS"
	case errors.Is(err, context.DeadlineExceeded) || code == codes.DeadlineExceeded || code == codes.Unavailable:
		return "start the Collector or the backend, or let this node through the firewall; until then traces wait in " +
			"memory, or in [export.spool]"
	}
	return "read the endpoint's log for the reason"
}
