package probe

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/test/harness"
)

var dialers = map[string]func(string) error{
	// "from to": it connects, and waits for a message.
	"dialfrom": func(argument string) error {
		from, to, _ := strings.Cut(argument, " ")
		local, err := net.ResolveTCPAddr("tcp", from)
		if err != nil {
			return err
		}
		c, err := (&net.Dialer{LocalAddr: local}).Dial("tcp", to)
		if err != nil {
			return err
		}
		_, err = c.Read(make([]byte, 1))
		return err
	},
	// over an IPv6 socket
	"dialmapped": func(port string) error {
		n, err := strconv.Atoi(port)
		if err != nil {
			return err
		}
		fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		to := &unix.SockaddrInet6{Port: n}
		copy(to.Addr[:], net.ParseIP("127.0.0.1").To16())
		if err := unix.Connect(fd, to); err != nil {
			return err
		}
		_, err = unix.Read(fd, make([]byte, 1))
		return err
	},
	// Datagrams have no answering peer, but DNS.
	"datagrams": func(path string) error {
		for network, address := range map[string]string{"udp4": "127.0.0.1:5353", "udp6": "[::1]:5353", "unixgram": path} {
			if c, err := net.Dial(network, address); err == nil {
				defer c.Close()
			}
		}
		return nil
	},
	// It connects to all addresses at once, without an answer.
	"dialall": func(addresses string) error {
		done := make(chan struct{})
		all := strings.Fields(addresses)
		for _, address := range all {
			go func() {
				if c, err := net.Dial("tcp", address); err == nil {
					c.Close()
				}
				done <- struct{}{}
			}()
		}
		for range all {
			<-done
		}
		return nil
	},
	// "listen from": it listens, and connects to itself from there.
	"impostor": func(argument string) error {
		listen, from, _ := strings.Cut(argument, " ")
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
		if err != nil {
			return err
		}
		lo, err := unix.NewIfreq("lo")
		if err != nil {
			return err
		}
		lo.SetUint16(unix.IFF_UP)
		if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
			return fmt.Errorf("lo: %w", err)
		}
		l, err := net.Listen("tcp", listen)
		if err != nil {
			return err
		}
		local, err := net.ResolveTCPAddr("tcp", from)
		if err != nil {
			return err
		}
		if _, err := (&net.Dialer{LocalAddr: local}).Dial("tcp", listen); err != nil {
			return err
		}
		_, err = l.Accept()
		return err
	},
}

func freePort(t *testing.T) int {
	t.Helper()
	l := harness.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func TestWhoHasTheSameAddressesIsNotThePeer(t *testing.T) {
	for name, at := range map[string]struct{ host, from string }{
		"all the same":                   {"127.0.0.1", "127.0.0.1"},
		"only the ports":                 {"127.0.0.2", "127.0.0.2"},
		"as an ingress on every address": {"", "127.0.0.3"},
	} {
		t.Run(name, func(t *testing.T) {
			mute := serve(t, "tcp", "127.0.0.1:0", false)
			_, port, _ := net.SplitHostPort(mute.address)
			client := freePort(t)
			var complaints bytes.Buffer
			// A link that works without access to the test's directory.
			impostor := exec.Command("/proc/self/exe")
			impostor.Args[0], impostor.Stderr = "impostor", &complaints
			impostor.Env = append(os.Environ(), fmt.Sprintf("ARGUMENT=%s:%s %s:%d", at.host, port, at.from, client))
			impostor.SysProcAttr = &syscall.SysProcAttr{
				Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
				Credential:  &syscall.Credential{NoSetGroups: true},
				UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: 65534, Size: 1}},
				GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: 65534, Size: 1}},
			}
			var accepts []*event.Accept
			o := observe(t, func(o *observed) {
				victim := acting(t, "dialfrom", fmt.Sprintf("127.0.0.1:%d %s", client, mute.address))
				harness.Check(t, victim.Start())
				defer func() { _ = victim.Process.Kill(); _ = victim.Wait() }()
				o.until(t, "the call", func(b event.Body) bool { _, is := b.(*event.Connect); return is })
				o.mu.Lock()
				o.everyAccept = true
				o.mu.Unlock()
				if err := impostor.Run(); err != nil {
					t.Errorf("%v: %s", err, complaints.String())
				}
			})
			if accepts = all[*event.Accept](o); len(accepts) != 0 {
				t.Errorf("a stranger is said to have answered: %+v (pid %d)", accepts[0], impostor.Process.Pid)
			}
		})
	}
}

func TestASocketInThePlaceOfAnotherOne(t *testing.T) {
	for _, network := range []string{"unix", "tcp"} {
		for _, another := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, another one: %v", network, another), func(t *testing.T) {
				address := map[string]string{"unix": filepath.Join(t.TempDir(), "agent.sock"), "tcp": "127.0.0.1:0"}[network]
				s := serve(t, network, address, false)
				o := observe(t, func(o *observed) {
					o.agents = []int{s.pid}
					conns := o.probe.kernel.Inside.Conns
					cmd := acting(t, "dial", network+" "+s.address)
					harness.Check(t, cmd.Start())
					o.until(t, "the call", func(b event.Body) bool { _, is := b.(*event.Connect); return is })
					var sk uint64
					var c kernel.InsideConn
					for entries := conns.Iterate(); another && entries.Next(&sk, &c); {
						if o.ours.Mine(kernel.ProcessOf(c.P.Self)) {
							c.Ino++ // as if made for a closed one
							harness.Check(t, conns.Put(sk, &c))
						}
					}
					harness.Check(t, errors.Join(s.in.Close(), cmd.Wait()))
				})
				// A late accept is preceded by a report of the listener.
				accepts := slices.DeleteFunc(all[*event.Accept](o), func(a *event.Accept) bool { return a.Listens })
				harness.Equal(t, len(accepts), map[bool]int{false: 1}[another], printed(o, accepts))
			})
		}
	}
}

func TestAPeerIsFoundHoweverItIsReached(t *testing.T) {
	near, far := newNetwork(t), newNetwork(t)
	far.join(near, "10.254.77.2/30", "10.254.77.1/30")
	far.ip("addr add fd77::2/64 dev far nodad")
	near.ip("addr add fd77::1/64 dev near nodad")
	for name, test := range map[string]struct {
		server, client *network
		listen         string
		act            string
		argument       func(port string) string
	}{
		"IPv4, IPv4":                    {nil, nil, "127.0.0.1:0", "dial", nil},
		"IPv6, IPv6":                    {nil, nil, "[::1]:0", "dial", nil},
		"IPv4, a socket for both":       {nil, nil, "[::]:0", "dial", func(port string) string { return "tcp 127.0.0.1:" + port }},
		"mapped, a socket for both":     {nil, nil, "[::]:0", "dialmapped", func(port string) string { return port }},
		"mapped, a socket of IPv4":      {nil, nil, "127.0.0.1:0", "dialmapped", func(port string) string { return port }},
		"another namespace, IPv4":       {far, near, "10.254.77.2:0", "dial", nil},
		"another namespace, IPv6":       {far, near, "[fd77::2]:0", "dial", nil},
		"another namespace, of nothing": {far, near, ":0", "dial", func(port string) string { return "tcp 10.254.77.2:" + port }},
	} {
		t.Run(name, func(t *testing.T) {
			var s *server
			if test.server == nil {
				s = serve(t, "tcp", test.listen, true)
			} else {
				test.server.in(func() { s = serve(t, "tcp", test.listen, true) })
			}
			_, port, _ := net.SplitHostPort(s.address)
			argument := "tcp " + s.address
			if test.argument != nil {
				argument = test.argument(port)
			}
			cmd := acting(t, test.act, argument)
			o := observe(t, func(o *observed) {
				o.agents = []int{s.pid}
				start := func() {
					harness.Check(t, cmd.Start())
				}
				if test.client == nil {
					start()
				} else {
					test.client.in(start)
				}
				harness.Check(t, cmd.Wait())
			})
			accepts := all[*event.Accept](o)
			if len(accepts) != 1 || int(accepts[0].Agent.PID) != s.pid {
				t.Errorf("accepted: %s", printed(o, accepts))
			}
		})
	}
}

func TestADatagramSocketCallsNobody(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l := harness.Must(net.ListenPacket("unixgram", path))(t)
	defer l.Close()
	if c := all[*event.Connect](run(t, acting(t, "datagrams", path))); len(c) != 0 {
		t.Errorf("%+v", c[0])
	}
}

func TestWhyAConnectionCameToNothing(t *testing.T) {
	near, far := newNetwork(t), newNetwork(t)
	far.join(near, "10.254.78.2/24", "10.254.78.1/24")
	near.ip("neigh add 10.254.78.3 lladdr 02:00:00:00:00:03 dev near nud permanent") // without an interface
	near.in(func() {
		for setting, value := range map[string]string{"tcp_syn_retries": "2", "neigh/near/mcast_solicit": "1"} {
			if err := os.WriteFile("/proc/sys/net/ipv4/"+setting, []byte(value), 0); err != nil {
				t.Error(err)
			}
		}
	})
	want := map[string]string{"10.254.78.2:1": "ECONNREFUSED", "10.254.78.3:1": "ETIMEDOUT", "10.254.78.4:1": "EHOSTUNREACH", "10.9.9.9:1": "ENETUNREACH"}
	var addresses []string
	for address := range want {
		addresses = append(addresses, address)
	}
	cmd := acting(t, "dialall", strings.Join(addresses, " "))
	o := observe(t, func(*observed) {
		near.in(func() {
			if err := cmd.Run(); err != nil {
				t.Error(err)
			}
		})
	})
	sockets, got := map[string]string{}, map[string]string{}
	for _, c := range all[*event.Connect](o) {
		if c.Address != "" {
			sockets[c.Socket] = c.Address
		}
	}
	for _, c := range all[*event.Connect](o) {
		if c.Error != "" {
			got[sockets[c.Socket]] = c.Error
		}
	}
	for address, failed := range want {
		harness.Equal(t, got[address], failed, address)
	}
	if t.Failed() {
		t.Log(printed(o, all[*event.Connect](o)), printed(o, all[*event.Lost](o)))
	}
}

// examined reports whether the reader looked at the call when its listener should have accepted, 50 ms after it.
func (o *observed) examined() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	called := int64(math.MaxInt64)
	return slices.ContainsFunc(o.events, func(e event.Event) bool {
		if _, is := e.Body.(*event.Connect); is {
			called = e.Time
		}
		_, is := e.Body.(*event.Tick)
		return is && e.Time-int64(200*time.Millisecond) > called
	})
}

func TestWhoseDoingIsEvidence(t *testing.T) {
	nobody := &syscall.Credential{Uid: 65534, Gid: 65534}
	for name, test := range map[string]struct {
		attr     syscall.SysProcAttr
		followed bool
	}{
		"root":                    {syscall.SysProcAttr{}, true},
		"root in another network": {syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}, true},
		"NET_ADMIN of the node":   {syscall.SysProcAttr{Credential: nobody, AmbientCaps: []uintptr{unix.CAP_NET_ADMIN}}, true},
		"NET_ADMIN of a pod":      {syscall.SysProcAttr{Credential: nobody, AmbientCaps: []uintptr{unix.CAP_NET_ADMIN}, Cloneflags: syscall.CLONE_NEWNET}, false},
		"SYS_ADMIN":               {syscall.SysProcAttr{Credential: nobody, AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN}, Cloneflags: syscall.CLONE_NEWNET}, true},
		"an API server":           {syscall.SysProcAttr{Credential: nobody}, false},
		"root of a user namespace": {syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER,
			Credential:  &syscall.Credential{NoSetGroups: true},
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: 65534, Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: 65534, Size: 1}},
		}, false},
	} {
		for _, listens := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, listens %v", name, listens), func(t *testing.T) {
				address := openFolder(t) + "/agent.sock"
				var env []string
				if listens {
					env = []string{late + "=" + address + ".now"}
				}
				agent := startAgentAs(t, address, &test.attr, env...)
				o := observe(t, func(o *observed) {
					o.agents = []int{agent.Pid}
					caller := acting(t, "dial", "unix "+address)
					harness.Check(t, caller.Start())
					if listens {
						o.until(t, "the call", func(b event.Body) bool { c, is := b.(*event.Connect); return is && c.Listener != nil })
						if test.followed {
							o.until(t, "the listener", func(b event.Body) bool { a, is := b.(*event.Accept); return is && a.Listens })
						} else { // the reader has examined the listener
							harness.Until(t, "as late an event", o.examined)
						}
					}
					harness.Check(t, errors.Join(os.WriteFile(address+".now", nil, 0o666), caller.Wait()))
				})
				accepts := all[*event.Accept](o)
				if len(accepts) == 0 || int(accepts[len(accepts)-1].Agent.PID) != agent.Pid || accepts[len(accepts)-1].Agent.Name == "" {
					t.Fatalf("accepted: %s", printed(o, accepts))
				}
				ran := slices.ContainsFunc(o.execs(), func(e *event.Exec) bool { return e.Name == "sleep" || e.Name == "true" })
				states := statesOf(o, accepts[len(accepts)-1].Agent.Process)
				if ran != test.followed || len(states) > 0 != test.followed {
					t.Errorf("followed: %v, states: %s", ran, printed(o, states))
				}
			})
		}
	}
}
