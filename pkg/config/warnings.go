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
)

// lookupTime is how long a name may take to be looked up, for a warning.
const lookupTime = 2 * time.Second

// Warnings returns which options are valid and still unwise, each with its place in the file. It
// looks up names, for lookupTime at most; ctx ends that.
func (s Source) Warnings(ctx context.Context, o Options) []Problem {
	var at positions
	if data, err := readFile(s.Path); err == nil {
		at = locate(data)
	}
	var all []Problem
	warn := func(key string, f *fault) {
		p := at.of(key)
		all = append(all, Problem{Source: s.Path, Line: p.line, Column: p.column, Key: key, What: f.what, Remedy: f.remedy})
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	if o.Export.OTLP.tellsOthers(ctx) {
		warn("export.otlp.headers", plainHeaders(o.Export.OTLP))
	}
	if o.Relay.Listen == "" {
		return all
	}
	upstream := o.RelayUpstream()
	if upstream.Endpoint != o.Export.OTLP.Endpoint && upstream.tellsOthers(ctx) {
		warn("relay.upstream", plainHeaders(upstream))
	}
	if upstream.leadsTo(ctx, o.Relay.Listen) {
		warn("relay.upstream", wrong(loopRemedy, "the relay would send to itself"))
	}
	return all
}

// plainHeaders says what tellsOthers found.
func plainHeaders(o OTLP) *fault {
	names := strings.Join(slices.Sorted(maps.Keys(o.Headers)), ", ")
	return wrong("write https:// in the endpoint, or send to a collector on this node, which adds them",
		"anybody on the way to %s can read %s: they are sent in plain text", quoted(o.Endpoint), quoted(names))
}

// tellsOthers tells whether headers are sent in plain text to another machine, or to one that
// is not known.
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

// leadsTo tells whether whoever is at an address is the target, however it is written.
func (o OTLP) leadsTo(ctx context.Context, listen string) bool {
	target, _ := o.Target()
	host, port, err := net.SplitHostPort(target)
	self, bad := netip.ParseAddrPort(listen)
	if err != nil || bad != nil {
		return false
	}
	n, err := strconv.ParseUint(port, 10, 16) // as it is dialled: 04319 is 4319
	return err == nil && uint16(n) == self.Port() && slices.ContainsFunc(lookUp(ctx, host), func(a netip.Addr) bool {
		// No address at all is this machine (connect(2) on Linux), by either protocol.
		return a == self.Addr().Unmap() || a.IsUnspecified()
	})
}

// lookUp returns the addresses of a host. What is known without a question nobody is asked:
// where ctx is done, nothing else is found.
func lookUp(ctx context.Context, host string) []netip.Addr {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a.Unmap().WithZone("")}
	}
	// RFC 6761, 6.3: it is never anybody else.
	if name := strings.ToLower(strings.TrimSuffix(host, ".")); name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
	}
	found, _ := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	for i, a := range found {
		found[i] = a.Unmap()
	}
	return found
}

// here returns what tells whether an address is this machine's.
func here() func(netip.Addr) bool {
	own := map[netip.Addr]bool{}
	addresses, _ := net.InterfaceAddrs() // without, none is ours: one warning too many
	for _, a := range addresses {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			own[p.Addr().Unmap()] = true
		}
	}
	return func(a netip.Addr) bool { return a.IsLoopback() || a.IsUnspecified() || own[a] }
}
