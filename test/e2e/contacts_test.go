//go:build linux

package e2e

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/harness/otlptest"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

// island is a network namespace whose routes end in a device on which every packet is visible.
type island struct {
	*testing.T
	name    string
	mu      sync.Mutex
	packets []string // "tcp 198.51.100.7:4317", by destination
}

const ownAddress = "198.51.100.7" // TEST-NET-2 (RFC 5737): the endpoint's address, if any

func newIsland(t *testing.T) *island {
	t.Helper()
	i := &island{T: t, name: fmt.Sprintf("cniscope-contacts-%d", os.Getpid())}
	i.run("ip", "netns", "add", i.name)
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", i.name).Run() })
	for _, args := range [][]string{
		{"link", "set", "lo", "up"},
		{"link", "add", "out", "type", "veth", "peer", "name", "nowhere"},
		{"link", "set", "nowhere", "up"},
		{"link", "set", "out", "arp", "off", "up"}, // without ARP every packet is sent
		{"addr", "add", ownAddress + "/24", "dev", "out"},
		{"route", "add", "default", "dev", "out"},
		{"-6", "addr", "add", "2001:db8::7/64", "dev", "out", "nodad"},
		{"-6", "route", "add", "default", "dev", "out"},
	} {
		i.run("ip", append([]string{"-n", i.name}, args...)...)
	}
	return i
}

func (i *island) run(program string, args ...string) {
	i.Helper()
	if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		i.Fatalf("%s %s: %v: %s", program, strings.Join(args, " "), err, out)
	}
}

func (i *island) within(do func() error) {
	i.Helper()
	harness.Check(i.T, harness.Within("/run/netns/"+i.name, do))
}

func (i *island) watch() {
	i.Helper()
	const all = unix.ETH_P_ALL<<8&0xff00 | unix.ETH_P_ALL>>8 // in network byte order
	fd := -1
	i.within(func() (err error) {
		fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, all)
		return err
	})
	harness.Check(i.T, unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000}))
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for b := make([]byte, 1<<16); ; {
			n, _, err := unix.Recvfrom(fd, b, 0)
			if err == nil {
				i.note(b[:n])
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	i.Cleanup(func() {
		close(stop)
		<-stopped
		_ = unix.Close(fd)
	})
}

func (i *island) note(packet []byte) {
	to := destination(packet)
	i.mu.Lock()
	defer i.mu.Unlock()
	if to != "" && !slices.Contains(i.packets, to) {
		i.packets = append(i.packets, to)
	}
}

// destination returns a packet's destination; empty for the kernel's own ICMPv6 of neighbors, routers and multicast
// groups (RFC 4861, RFC 3810).
func destination(p []byte) string {
	var to netip.Addr
	var protocol byte
	var rest []byte
	switch {
	case len(p) >= 20 && p[0]>>4 == 4:
		to, protocol, rest = netip.AddrFrom4([4]byte(p[16:20])), p[9], p[min(len(p), int(p[0]&15)*4):]
	case len(p) >= 40 && p[0]>>4 == 6:
		to, protocol, rest = netip.AddrFrom16([16]byte(p[24:40])), p[6], p[40:]
	default:
		return ""
	}
	switch {
	case (protocol == unix.IPPROTO_TCP || protocol == unix.IPPROTO_UDP) && len(rest) >= 4:
		kind := map[byte]string{unix.IPPROTO_TCP: "tcp", unix.IPPROTO_UDP: "udp"}[protocol]
		// An answer goes to the client's port, so the lower port is the listener's.
		return fmt.Sprintf("%s %s:%d", kind, to, min(binary.BigEndian.Uint16(rest), binary.BigEndian.Uint16(rest[2:])))
	case to.Is6() && (protocol == unix.IPPROTO_ICMPV6 || protocol == 0):
		return ""
	}
	return fmt.Sprintf("protocol %d to %s", protocol, to)
}

func (i *island) went() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Sorted(slices.Values(i.packets))
}

// With any environment it contacts only configured addresses while pods come and go.
func TestItContactsNothingElse(t *testing.T) {
	harness.Root(t)
	const others = "203.0.113.9" // TEST-NET-3
	environment := []string{
		"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=http://" + others + ":4317", "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT=http://" + others + ":4317",
		"OTEL_EXPORTER_JAEGER_ENDPOINT=http://" + others + ":14268", "OTEL_EXPORTER_ZIPKIN_ENDPOINT=http://" + others + ":9411",
		"OTEL_METRICS_EXPORTER=otlp", "OTEL_LOGS_EXPORTER=otlp", "OTEL_TRACES_EXPORTER=otlp",
		"OTEL_EXPERIMENTAL_CONFIG_FILE=http://" + others + "/x", "OTEL_CONFIG_FILE=http://" + others + "/x",
		"HTTP_PROXY=http://" + others + ":3128", "HTTPS_PROXY=http://" + others + ":3128", "ALL_PROXY=http://" + others + ":3128",
	}
	for name, test := range map[string]struct {
		endpoint bool
		env      []string
	}{
		"default options":                          {false, nil},
		"default options, a talkative environment": {false, environment},
		"one endpoint, a talkative environment":    {true, environment},
	} {
		t.Run(name, func(t *testing.T) {
			i := newIsland(t)
			got := new(otlptest.Collector)
			options := scope.Options{Program: "nsenter", Args: []string{"--net=/run/netns/" + i.name, program, "run"}, Env: test.env, TOML: quick}
			var want []string
			if test.endpoint {
				address := i.backend(got)
				_, port, err := net.SplitHostPort(address)
				harness.Check(t, err)
				want = []string{"tcp " + ownAddress + ":" + port}
				options.TOML += fmt.Sprintf("[sampling]\nratio = 1.0\n[export.otlp]\nendpoint = \"http://%s\"\n", address)
			}
			i.watch()
			i.pods(options)
			harness.EqualSlices(t, i.went(), want, "it sent to")
			if spans := got.Got(); (len(spans) > 0) != test.endpoint {
				t.Errorf("%d spans arrived", len(spans))
			}
		})
	}
}

func (i *island) backend(r *otlptest.Collector) (address string) {
	i.Helper()
	i.within(func() error {
		l, err := net.Listen("tcp", ownAddress+":4317") // below the clients' ports
		if err == nil {
			address = otlptest.BackendAt(i.T, l, r, grpc.StatsHandler(r))
		}
		return err
	})
	return address
}

func (i *island) pods(options scope.Options) {
	i.Helper()
	s := &stage{T: i.T, ctx: harness.Context(i.T)}
	s.startRig(rig.Options{})
	s.scope = scope.Observe(s.ctx, i.T, s.rig, options)
	for n := range 3 {
		harness.Check(i.T, s.rig.PodComesAndGoes(s.ctx, rig.PodOptions{Namespace: "shop", Name: fmt.Sprintf("web-%d", n)}))
	}
	harness.Check(i.T, s.scope.Stop()) // sends the queue
}
