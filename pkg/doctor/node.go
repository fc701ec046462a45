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

// kernelIsEnough: the kernel has what the probe uses, and we may use it.
func kernelIsEnough(f *fact.Facts) ([]Finding, error) {
	k := f.Kernel.Value
	if k.BTF != "" {
		return []Finding{{
			Level: Warning, Summary: "the kernel does not describe itself (BTF): plugins and commands are seen by the process connector, what they ask of the kernel is not",
			Evidence: []string{fact.Sayf("Linux %s: %s", k.Release, k.BTF)},
			Remedy:   []string{"use a kernel of 5.8 or later that is built with CONFIG_DEBUG_INFO_BTF=y; every current distribution's is"},
		}}, nil
	}
	var found []Finding
	for _, feature := range k.Features {
		if feature.There {
			continue
		}
		level := Note // everything else goes on
		if feature.Needed {
			level = Problem
		}
		found = append(found, Finding{
			Level: level, Summary: fact.Sayf("the kernel lacks %s: %s", feature.Name, feature.For),
			Evidence: []string{fact.Sayf("it is not in /sys/kernel/btf/vmlinux of Linux %s", k.Release)},
			Remedy:   []string{"use a later kernel"},
		})
	}
	if k.Lockdown == "confidentiality" {
		found = append(found, Finding{
			Level: Warning, Summary: "the kernel is locked down, BPF programs cannot read its memory: plugins and commands are seen by the process connector, what they ask of the kernel is not",
			Evidence: []string{"/sys/kernel/security/lockdown: confidentiality"},
			Remedy:   []string{"start it with lockdown=integrity"},
		})
	}
	if len(k.Lacking) > 0 && len(found) == 0 {
		return nil, errors.New("this user may not load BPF programs (" + fact.List(k.Lacking) + "): run it as root to check that")
	}
	return found, nil
}

// clockIsSet: the node's clock is kept by something, so that its spans line up with those of other nodes.
func clockIsSet(f *fact.Facts) ([]Finding, error) {
	if c := f.Clock.Value; !c.Synchronised {
		return []Finding{{
			Level: Warning, Summary: "the clock is not synchronised: traces of several nodes do not line up, and certificates may seem invalid",
			Evidence: []string{
				fact.Sayf("adjtimex: STA_UNSYNC, maximum error %s", c.MaxError.Round(time.Millisecond).String()),
				"it says " + f.Now.UTC().Format(time.RFC3339),
			},
			Remedy: []string{"systemctl enable --now chrony (or systemd-timesyncd); timedatectl shows it"},
		}}, nil
	}
	return nil, nil
}

// kubeletIsHealthy: kubelet answers its healthz with "ok".
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
	return []Finding{{
		Level: Problem, Summary: "kubelet is not healthy", Evidence: []string{said},
		Remedy: []string{"systemctl status kubelet; journalctl -u kubelet -e", "if its healthz is elsewhere: --kubelet HOST:PORT"},
	}}, nil
}

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
		return "set endpoint to the port for OTLP over gRPC, mostly 4317: 4318 is OTLP over HTTP, which cniscope does not send"
	case strings.Contains(said, "tls:") || strings.Contains(said, "x509:") || strings.Contains(said, "first record does not look like"):
		return "set endpoint to http:// for plain text or https:// for TLS, and ca to the authority that signed the certificate"
	case strings.Contains(said, "no such host"):
		return "set endpoint to an address or a name that this node can resolve: a Service's name is known to pods only, unless the node asks the cluster's DNS"
	case errors.Is(err, context.DeadlineExceeded) || code == codes.DeadlineExceeded || code == codes.Unavailable:
		return "start the Collector or the backend, or let this node through the firewall; until then operations wait in memory, or in [export.spool]"
	}
	return "read the endpoint's own log: it answers, and refuses"
}
