package config

import (
	"context"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/disk"
	"github.com/cniscope/cniscope/pkg/webconfig"
)

// crossed finds contradictions with options that the text sets.
func crossed(on disk.FS, o Options, set positions) map[string]*Problem {
	faults := map[string]*Problem{}
	has := func(key string) bool { _, ok := set[key]; return ok }

	if has("probe.rootless") && o.Probe.Rootless && len(o.Probe.Callers) == 0 {
		faults["probe.rootless"] = wrong("name the runtime's program in probe.callers", "does nothing alone")
	}
	if key, f := o.relayFault(has); f != nil {
		faults[key] = f
	}
	maps.Copy(faults, o.Export.OTLP.crossed(has))
	if o.system == Windows {
		for _, opt := range Windows.settable() {
			if opt.tag.Get("linux") == "only" && has(opt.key) && opt.toml(opt.of(&o).Interface()) != opt.written() {
				faults[opt.key] = wrong("remove it", "is for Linux: on Windows there is none")
			}
		}
	}
	here := o.system == Here() // files of another system are not available
	maps.Copy(faults, o.Metrics.crossed(has, here))
	if here && len(faults) == 0 && (has(otlp+"ca") || has(otlp+"cert") || has(otlp+"key")) {
		for key, f := range o.Export.OTLP.files(on) {
			faults[otlp+key] = f
		}
	}
	return faults
}

const otlp = "export.otlp."

func (o OTLP) crossed(has func(key string) bool) map[string]*Problem {
	faults := map[string]*Problem{}
	if !has(otlp + "endpoint") {
		return faults
	}
	if has(otlp+"insecure") && o.Insecure && strings.HasPrefix(o.Endpoint, "https://") {
		const what = "says plain text, but the endpoint says https://"
		faults[otlp+"insecure"] = wrong("remove it, or write http:// there", what)
	}
	_, plain := o.Target()
	for key, file := range map[string]string{"ca": o.CA, "cert": o.Cert, "key": o.Key} {
		if plain && file != "" && has(otlp+key) {
			faults[otlp+key] = wrong("write https:// in the endpoint", "does nothing without TLS")
		}
	}
	return faults
}

const loopRemedy = "name the real endpoint in relay.upstream or export.otlp.endpoint"

func (o Options) relayFault(has func(string) bool) (string, *Problem) {
	// No DNS lookups: Warnings and the dialing relay do them.
	known, cancel := context.WithCancel(context.Background())
	cancel()
	at := o.Relay.Listen
	for i, taken := range []string{o.Metrics.Listen, o.Metrics.HealthListen} {
		if strings.HasPrefix(taken, ":") {
			taken = "0.0.0.0" + taken
		}
		if (OTLP{Endpoint: "http://" + taken}).leadsTo(known, at) && !anyPort(at) && has("relay.listen") {
			key := []string{"listen", "health_listen"}[i]
			return "relay.listen", wrong("write another port", "is the address of metrics.%s", key)
		}
	}
	if !o.RelayUpstream().leadsTo(known, at) {
		return "", nil
	}
	for _, key := range []string{"relay.upstream", "export.otlp.endpoint", "relay.listen"} {
		if has(key) {
			return key, wrong(loopRemedy, "the relay would send to itself")
		}
	}
	return "", nil
}

// unwise resolves names until ctx is done.
func (o Options) unwise(ctx context.Context) map[string]*Problem {
	found := map[string]*Problem{}
	endpoints := map[string]string{"export.otlp.endpoint": o.Export.OTLP.Endpoint, "relay.upstream": o.Relay.Upstream}
	for key, endpoint := range endpoints {
		if what, remedy := wrongPort(endpoint); what != "" {
			found[key] = wrong(remedy, "%s", what)
		}
	}
	if s := o.Sampling; s.Ratio == 0 && len(s.Keep)+len(s.Rules)+len(s.Annotated) == 0 {
		what := "no trace is exported"
		if s.ParentBased {
			what = "only traces below the runtime's sampled spans are exported"
		}
		remedy := `write keep = ["slow", "failed"], or a ratio above 0`
		found["sampling.keep"] = wrong(remedy, "ratio is 0 and keep is empty, so %s", what)
	}
	if o.Export.OTLP.tellsOthers(ctx) {
		found["export.otlp.headers"] = plainHeaders(o.Export.OTLP)
	}
	var ours []string
	for _, key := range slices.Sorted(maps.Keys(o.Resource.Attributes)) {
		if slices.Contains([]string{"k8s.namespace.name", "k8s.pod.ip", "k8s.pod.name", "k8s.pod.uid"}, key) {
			ours = append(ours, quoted(key))
		}
	}
	if len(ours) > 0 {
		found["resource.attributes"] = wrong("remove it", "%s has no effect: in a trace it describes the observed pod",
			strings.Join(ours, ", "))
	}
	if o.system == Here() {
		maps.Copy(found, o.Metrics.unwise(time.Now()))
	}
	if o.Relay.Listen == "" {
		return found
	}
	upstream := o.RelayUpstream()
	if upstream.Endpoint != o.Export.OTLP.Endpoint && upstream.tellsOthers(ctx) {
		found["relay.upstream"] = plainHeaders(upstream)
	}
	if upstream.leadsTo(ctx, o.Relay.Listen) {
		found["relay.upstream"] = wrong(loopRemedy, "the relay would send to itself")
	}
	return found
}

func plainHeaders(o OTLP) *Problem {
	names := strings.Join(slices.Sorted(maps.Keys(o.Headers)), ", ")
	return wrong("write https:// in the endpoint, or send to a collector on this node, which adds them",
		"%[2]s is sent to %[1]s in plain text, readable on the network", quoted(o.Endpoint), quoted(names))
}

// tellsOthers reports whether headers may go to another machine in plain text.
func (o OTLP) tellsOthers(ctx context.Context) bool {
	target, plain := o.Target()
	if !plain || len(o.Headers) == 0 || target == "" {
		return false
	}
	host, _, _ := net.SplitHostPort(target)
	ours := here()
	addresses := lookUp(ctx, host)
	return len(addresses) == 0 || slices.ContainsFunc(addresses, func(a netip.Addr) bool { return !ours(a) })
}

func (o OTLP) leadsTo(ctx context.Context, listen string) bool {
	target, _ := o.Target()
	host, port, err := net.SplitHostPort(target)
	self, bad := netip.ParseAddrPort(listen)
	if err != nil || bad != nil {
		return false
	}
	n, err := strconv.ParseUint(port, 10, 16) // as it is dialed: 04319 is 4319
	return err == nil && uint16(n) == self.Port() && slices.ContainsFunc(lookUp(ctx, host), func(a netip.Addr) bool {
		return a == self.Addr().Unmap() || a.IsUnspecified()
	})
}

// lookUp returns a host's addresses; once ctx is done, only those known without DNS.
func lookUp(ctx context.Context, host string) []netip.Addr {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a.Unmap().WithZone("")}
	}
	// RFC 6761, 6.3: localhost is always this machine.
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
	}
	found, _ := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	for i, a := range found {
		found[i] = a.Unmap()
	}
	return found
}

func here() func(netip.Addr) bool {
	own := map[netip.Addr]bool{}
	addresses, _ := net.InterfaceAddrs() // an error only causes a needless warning
	for _, a := range addresses {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			own[p.Addr().Unmap()] = true
		}
	}
	return func(a netip.Addr) bool { return a.IsLoopback() || a.IsUnspecified() || own[a] }
}

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
