//go:build linux

package scenarios

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

const (
	logSocket = incidentDir + "/dev-log"
	telemetry = incidentDir + "/telemetry.sock"
	openLock  = incidentDir + "/network.lock"
	pools     = incidentDir + "/pools.sock"
	ipamd     = "127.0.6.51:50051"
	proxy     = "127.0.6.60:3128"
)

// failing is a plugin's failure in the words of its report.
func failing(words string) func() error { return func() error { return errors.New(words) } }

func init() {
	doings["ADD syslog"] = func() error {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = unix.Connect(fd, &unix.SockaddrUnix{Name: logSocket})
		}
		if err == nil {
			err = os.WriteFile(logSocket+".asked", nil, 0o600)
		}
		if err == nil {
			err = unix.Send(fd, []byte("<30>multus[1]: ADD"), unix.MSG_NOSIGNAL)
		}
		return err
	}
	doings["ADD telemetry"] = func() error {
		c, err := net.Dial("unix", telemetry)
		if err == nil {
			defer c.Close()
			_, err = c.Write(make([]byte, 4<<20))
		}
		return err
	}
	doings["ADD open"] = func() error {
		_, err := openLocked(unix.F_OFD_SETLKW)
		return err
	}
	doings["ADD proxy"] = func() error {
		through := http.ProxyURL(&url.URL{Scheme: "http", Host: proxy})
		client := http.Client{Transport: &http.Transport{Proxy: through, TLSHandshakeTimeout: 2 * time.Second}}
		answer, err := client.Get("https://10.96.0.1:443/apis/crd.projectcalico.org/v1/clusterinformations/default")
		if err == nil {
			return answer.Body.Close()
		}
		return fmt.Errorf("error getting ClusterInformation: %w", err)
	}
	doings["ADD pools"] = func() error {
		for answer := ""; answer != "200"; time.Sleep(700 * time.Millisecond) {
			c, err := net.Dial("unix", pools)
			if err != nil {
				return err
			}
			b, _ := io.ReadAll(c)
			answer = string(b)
			c.Close()
		}
		return nil
	}
	doings["ADD announce"] = func() error { return harness.Within(os.Getenv("CNI_NETNS"), announce) }
	doings["ADD rest"] = func() error {
		for range 19 {
			time.Sleep(100 * time.Millisecond)
		}
		return nil
	}
	doings["ADD ipamd"] = func() error {
		for {
			c, err := net.Dial("tcp", ipamd)
			if err == nil {
				return c.Close()
			}
			_ = os.WriteFile(incidentDir+"/ipamd.asked", nil, 0o600)
			time.Sleep(500 * time.Millisecond)
		}
	}
	doings["ADD endpoints"] = failing(`Internal error occurred: failed calling webhook "nodes.capsule.clastix.io": failed to call webhook: Post "https://capsule-webhook-service.caas.svc:443/nodes?timeout=30s": no endpoints available for service "capsule-webhook-service"`)
	doings["ADD webhook"] = failing(`Multus: [shop/pod]: error setting the networks status: status update failed for pod shop/pod: Internal error occurred: failed calling webhook "validation.gatekeeper.sh": failed to call webhook: Post "https://gatekeeper-webhook-service.gatekeeper-system.svc:443/v1/admit?timeout=3s": tls: failed to verify certificate: x509: certificate signed by unknown authority`)
	doings["ADD watches"] = failing(`failed to create watcher: inotify_add_watch /etc/cni/net.d: no space left on device`)
	doings["ADD cgroup"] = failing(`mkdir /sys/fs/cgroup/memory/kubepods/burstable/pod79fe803c: no space left on device`)
}

const announced = "fd09::7"

// announce adds an address, and binds to it until detection ends.
func announce() error {
	link, err := netlink.LinkByName("eth0")
	if err != nil {
		return err
	}
	address, err := netlink.ParseAddr(announced + "/64")
	for option, value := range map[string]string{"accept_dad": "1", "dad_transmits": "2"} { // bridge switched it off
		err = errors.Join(err, os.WriteFile("/proc/sys/net/ipv6/conf/eth0/"+option, []byte(value), 0))
	}
	if err == nil {
		err = netlink.AddrAdd(link, address)
	}
	for err == nil {
		c, refused := net.ListenUDP("udp6", &net.UDPAddr{IP: address.IP})
		if refused == nil {
			return c.Close()
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}

// openLocked locks openLock for an open file.
func openLocked(how int) (*os.File, error) {
	f, err := os.OpenFile(openLock, os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		err = unix.FcntlFlock(f.Fd(), how, &unix.Flock_t{Type: unix.F_WRLCK})
	}
	return f, err
}

// unread is a log socket whose reader takes nothing for two seconds.
func unread(s *scene) func() {
	l := harness.Must(net.ListenUnixgram("unixgram", &net.UnixAddr{Name: logSocket, Net: "unixgram"}))(s.T)
	var senders []int
	for sent := true; sent; { // one sender's buffer may hold fewer than the queue
		fd := harness.Must(unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK, 0))(s.T)
		harness.Check(s.T, unix.Connect(fd, &unix.SockaddrUnix{Name: logSocket}))
		senders, sent = append(senders, fd), false
		for unix.Send(fd, []byte("full"), 0) == nil {
			sent = true
		}
	}
	asked := func() bool { return os.Remove(logSocket+".asked") == nil }
	stop := whenever(asked, func() {
		time.AfterFunc(2*time.Second, func() {
			for b := make([]byte, 64); ; {
				if _, err := l.Read(b); err != nil {
					return
				}
			}
		})
	})
	return func() {
		stop()
		l.Close()
		for _, fd := range senders {
			_ = unix.Close(fd)
		}
	}
}

// serving is serves, beside an incident.
func serving(network, address string, serve func(net.Conn)) func(*scene) func() {
	return func(s *scene) func() { return serves(s.T, network, address, serve) }
}

// Each has its cause and what helps, not the remedy of a cause that has the same words.
func unseen() []incident {
	const handshake = "HTTP/1.1 200 OK\r\n\r\n"
	name := rig.Bridge(rig.Conf{"bridge": "br_maths_overlays"})
	slow := []incident{{
		id: "log-socket-full", chain: does("multus", "syslog"), before: unread, cause: "system_call",
		says: []string{"multus waited in system call sendto"}, remedy: "names the socket", never: "disk",
	}, {
		id: "telemetry-unread", chain: does("contiv", "telemetry"), cause: "agent_idle", says: []string{telemetry, "was idle"}, remedy: "'s log",
		before: serving("unix", telemetry, func(c net.Conn) {
			time.Sleep(2 * time.Second)
			_, _ = io.Copy(io.Discard, c)
		}), never: "disk",
	}, {
		id: "open-file-lock", chain: does("contiv", "open"), cause: "file_lock", says: []string{openLock + ", held by "}, remedy: "if it hangs",
		before: func(s *scene) func() {
			f := harness.Must(openLocked(unix.F_OFD_SETLK))(s.T)
			stop := whenever(waitedFor(s.T, openLock), func() { time.AfterFunc(2*time.Second, func() { f.Close() }) })
			return func() { stop(); f.Close() }
		}, never: "iptables",
	}, {
		id: "agent-lacks-addresses", chain: does("contiv", "pools"), cause: "sleep", says: []string{"slept between its ", " requests of ", pools}, remedy: "read the log",
		before: func(s *scene) func() {
			var asked atomic.Int32
			return serves(s.T, "unix", pools, func(c net.Conn) {
				answer := "503"
				if asked.Add(1) > 3 {
					answer = "200"
				}
				_, _ = io.WriteString(c, answer)
				c.Close()
			})
		}, never: "shorten",
	}, {
		id: "agent-starts-late", chain: does("contiv", "ipamd"), cause: "agent_refused", says: []string{"times to connect to " + ipamd}, remedy: "start the agent",
		before: func(s *scene) func() {
			_ = os.Remove(incidentDir + "/ipamd.asked")
			asked := sync.OnceValue(func() func() { return serves(s.T, "tcp", ipamd, func(c net.Conn) { c.Close() }) })
			stop := whenever(func() bool { return os.Remove(incidentDir+"/ipamd.asked") == nil }, func() {
				time.AfterFunc(2*time.Second, func() { asked() })
			})
			return func() { stop(); asked()() }
		}, never: "shorten",
	}, {
		id: "announcement-waits-for-dad", chain: does("multus", "announce"), cause: "sleep", says: []string{"plugin multus slept"},
		remedy: "duplicate address detection of " + announced, never: "shorten",
	}, {
		id: "announcement-twin", chain: does("multus", "rest"), cause: "sleep", says: []string{"plugin multus slept"}, remedy: "shorten", never: "duplicate address",
	}}
	failed := []incident{{
		id: "no-result", chain: []rig.Plugin{rig.Bridge(), rig.Test("mute")}, says: []string{"mute exited 0, but no result was seen"}, remedy: "standard output", never: "kubectl describe",
	}, {
		id: "link-to-nothing", chain: []rig.Plugin{rig.Bridge(), rig.Test("linked")}, cause: "missing_plugin",
		says: []string{"/linked is a broken link to /nowhere/k3s/bin/cni"}, remedy: "ln -sf",
		before: func(s *scene) func() {
			file := filepath.Join(s.rig.CNIBinDir(), "linked")
			harness.Check(s.T, os.Symlink("/nowhere/k3s/bin/cni", file))
			s.looked("linked")
			return func() { _ = os.Remove(file) }
		}, never: "install plugin",
	}, {
		id: "through-a-proxy", chain: does("calico", "proxy"), says: []string{"TLS handshake timeout", "plugin calico waited for ", proxy}, remedy: "NO_PROXY",
		before: serving("tcp", proxy, func(c net.Conn) {
			_, _ = c.Read(make([]byte, 4096))
			_, _ = io.WriteString(c, handshake)
			time.Sleep(4 * time.Second)
			c.Close()
		}), never: "etcd",
	}, {
		id: "webhook-without-endpoints", chain: does("calico", "endpoints"), says: []string{"no endpoints"}, remedy: "fix the webhook", never: "start the API server",
	}, {
		id: "webhook-certificate", chain: does("multus", "webhook"), says: []string{"unknown authority"}, remedy: "caBundle", never: "kubeconfig",
	}, {
		id: "inotify-watches", chain: does("multus", "watches"), says: []string{"inotify_add_watch"}, remedy: "max_user_watches", never: "df -h",
	}, {
		id: "cgroups-used-up", chain: does("contiv", "cgroup"), says: []string{"/sys/fs/cgroup/memory/kubepods/"}, remedy: "cgroup", never: "df -h",
	}, {
		id: "sysctl-refused", chain: []rig.Plugin{rig.Bridge(), rig.Tuning(map[string]string{"net.ipv4.tcp_ecn": "9"})},
		says: []string{"tcp_ecn: invalid argument"}, remedy: "value that the kernel takes", never: "module",
	}, {
		id: "bridge-name-too-long", chain: []rig.Plugin{name}, says: []string{"br_maths_overlays"}, remedy: "up to 15 characters", never: "module",
	}, {
		id: "text-file-busy", chain: []rig.Plugin{rig.Bridge(), rig.Test("idler")}, cause: "runtime", says: []string{"plugin idler did not run"}, remedy: "text file busy",
		before: func(s *scene) func() {
			f := harness.Must(os.OpenFile(filepath.Join(s.rig.Dir(), "cni", "bin", "idler"), os.O_WRONLY, 0))(s.T)
			return func() { f.Close() }
		}, never: "CNI binary directory",
	}}
	for i := range failed {
		failed[i].fails, failed[i].cause = true, cmp.Or(failed[i].cause, "plugin_error")
	}
	return append(slow, failed...)
}
