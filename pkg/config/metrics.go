package config

import (
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/webconfig"
)

const metricsKey = "metrics."

func (m Metrics) crossed(has func(key string) bool, readable bool) map[string]*Problem {
	faults := map[string]*Problem{}
	for key, value := range map[string]string{"web_config": m.WebConfig, "health_listen": m.HealthListen} {
		if value != "" && m.Listen == "" && has(metricsKey+key) {
			faults[metricsKey+key] = wrong("set listen, too: "+listenRemedy, "does nothing without listen")
		}
	}
	if len(faults) > 0 {
		return faults
	}
	if m.HealthListen != "" && m.HealthListen == m.Listen && !anyPort(m.Listen) && has(metricsKey+"health_listen") {
		faults[metricsKey+"health_listen"] = wrong(
			`write another port, such as "127.0.0.1:9472"; listen has /healthz and /readyz anyway`, "is the address of listen")
	}
	if readable && m.WebConfig != "" && has(metricsKey+"web_config") {
		if _, err := webconfig.Check(m.WebConfig); err != nil {
			const remedy = "see https://github.com/prometheus/exporter-toolkit/blob/master/docs/web-configuration.md"
			faults[metricsKey+"web_config"] = wrong(remedy, "%s", err)
		}
	}
	return faults
}

func anyPort(address string) bool {
	_, port, _ := net.SplitHostPort(address)
	return strings.Trim(port, "0") == ""
}

func (m Metrics) unwise(now time.Time) map[string]*Problem {
	found := map[string]*Problem{}
	if m.Listen == "" {
		return found
	}
	var s webconfig.Summary
	if m.WebConfig != "" {
		var err error
		if s, err = webconfig.Check(m.WebConfig); err != nil {
			return found
		}
	}
	guarded := s.ClientCertificates || s.Users
	switch open := reachable(m.Listen); {
	case open && !guarded:
		const remedy = "name users or client certificates in web_config, keep others away by a firewall or NetworkPolicy, " +
			`or listen on "127.0.0.1:9471"`
		found[metricsKey+"listen"] = wrong(remedy, "any client that reaches %s can read which plugins and commands "+
			"this node runs, how often they fail and how long they take", quoted(m.Listen))
	case open && !s.TLS:
		found[metricsKey+"web_config"] = wrong("add tls_server_config to it",
			"passwords are sent to %s in plain text, readable on the network", quoted(m.Listen))
	}
	switch {
	case s.Exposed != "":
		found[metricsKey+"web_config"] = wrong("chmod o-r "+s.Exposed,
			"any user of this node can read the private key %s", quoted(s.Exposed))
	case s.TLS && now.After(s.Expires):
		found[metricsKey+"web_config"] = wrong("renew it; it is read again without a restart",
			"the certificate has expired, on %s: a client that checks it will not connect",
			s.Expires.UTC().Format(time.DateOnly))
	}
	if m.HealthListen != "" && reachable(m.HealthListen) && guarded {
		found[metricsKey+"health_listen"] = wrong(
			`listen on "127.0.0.1:9472", or the address of the pod if the kubelet asks there`,
			"any client that reaches %s can read cniscope's health", quoted(m.HealthListen))
	}
	return found
}

// reachable reports whether other machines can connect; an unresolved name counts.
func reachable(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil || host == "localhost" {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return err != nil || !ip.Unmap().IsLoopback()
}
