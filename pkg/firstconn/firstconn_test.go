package firstconn

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/pkg/source"
	"github.com/cniscope/cniscope/test/harness"
)

const (
	snmp = `Ip: Forwarding DefaultTTL InReceives OutNoRoutes
Ip: 2 64 12 3
Icmp: InMsgs InErrors InDestUnreachs
Icmp: 4 0 1
Tcp: RtoAlgorithm MaxConn ActiveOpens PassiveOpens AttemptFails
Tcp: 1 -1 7 0 2
Udp: InDatagrams NoPorts InErrors OutDatagrams
Udp: 4 0 0 9
`
	netstat = "TcpExt: SyncookiesSent TCPSynRetrans\nTcpExt: 0 5\n"
	arp     = `IP address       HW type     Flags       HW address            Mask     Device
10.22.0.1        0x1         0x2         5e:0c:11:22:33:44     *        eth0
10.22.0.9        0x1         0x0         00:00:00:00:00:00     *        eth0
`
)

func TestWhatTheKernelCountedIsRead(t *testing.T) {
	want := &event.Tries{
		Opened: 7, Failed: 2, SYNs: 5, Unroutable: 3, Unreached: 1, Asked: 9, Answered: 4,
		Silent: []string{"10.22.0.9"},
	}
	harness.DeepEqual(t, Parse(snmp, netstat, arp), want)
	own := Parse("Icmp: InDestUnreachs OutDestUnreachs\nIcmp: 5 4\nUdp: NoPorts\nUdp: 1\n", "", "")
	harness.DeepEqual(t, own, &event.Tries{Unreached: 2, Unresolved: 3}, "of its own kernel, for a closed port and neighbors")
	harness.DeepEqual(t, Parse("", "x\ny: 1", "\n\n"), &event.Tries{}, "of nothing")
	for text, want := range map[string]bool{snmp: true, "Ip: InReceives OutRequests\nIp: 5 0\n": false, "Ip: InReceives OutRequests\nIp: 5 1\n": true} {
		harness.Equal(t, used(text), want, text)
	}
}

// A silent pod is looked at whenever the time since its setup has doubled, for a minute, and a late one at its
// connection. Nothing is read of the node, and nothing sent, unless packets had no answer.
func TestWhenAPodIsLookedAt(t *testing.T) {
	var (
		blocked = &event.Tries{Opened: 1, SYNs: 2}
		idle    = &event.Tries{}
		off     = event.Obstacle{Kind: event.ObstacleSwitch, Name: "net.ipv4.ip_forward"}
	)
	wait := func(d time.Duration) func(*Source) { return func(*Source) { time.Sleep(d) } }
	pod := event.Namespace{Key: "7", Label: "4026532000"}
	setUp := func(key string) model.Connected {
		return model.Connected{Flight: model.Flight{ContainerID: "a"}, NetNS: event.Namespace{Key: key, Label: pod.Label}, End: clock.Monotonic()}
	}
	inTime := func(s *Source) { s.Connected(pod) }
	stopped := func(s *Source) {
		for _, id := range []string{"another", "a"} {
			s.Tell(event.Event{Body: &event.Sandbox{Phase: event.SandboxStopped, ID: id}})
		}
	}
	late := func(s *Source) {
		c := setUp(pod.Key)
		c.At = c.End
		s.Await(c)
	}
	for name, test := range map[string]struct {
		tries  *event.Tries
		acts   []func(*Source)
		looks  []time.Duration
		looked int
		gone   []event.Obstacle
	}{
		"never connected":                 {blocked, []func(*Source){wait(3 * time.Minute)}, []time.Duration{10, 20, 40}, 3, nil},
		"never tried":                     {idle, []func(*Source){wait(3 * time.Minute)}, nil, 0, nil},
		"never tried, and a rule is gone": {idle, []func(*Source){wait(3 * time.Minute)}, []time.Duration{10, 20, 40}, 0, []event.Obstacle{event.Gone("rule")}},
		"connected in time":               {blocked, []func(*Source){wait(5 * time.Second), inTime, wait(time.Minute)}, nil, 0, nil},
		"stopped":                         {blocked, []func(*Source){wait(15 * time.Second), stopped, wait(time.Minute)}, []time.Duration{10}, 1, nil},
		"connected late":                  {blocked, []func(*Source){wait(15 * time.Second), late, wait(time.Minute)}, []time.Duration{10, 15}, 2, nil},
		"connected late, was idle":        {idle, []func(*Source){wait(15 * time.Second), late, wait(time.Minute)}, []time.Duration{15}, 0, nil},
		"gone, and connected late?":       {nil, []func(*Source){wait(15 * time.Second), late, wait(time.Minute)}, []time.Duration{15}, 0, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			looked, began := 0, time.Now()
			s := New(Node{
				Tries: func(_ *procfs.Residents, all []event.Namespace) map[event.Namespace]*event.Tries {
					return map[event.Namespace]*event.Tries{all[0]: test.tries}
				},
				InTheWay: func(_ context.Context, sandboxes []string, node bool) map[string][]event.Obstacle {
					if node {
						looked++
					}
					return map[string][]event.Obstacle{sandboxes[0]: test.gone, "": {off}}
				},
			}, 10*time.Second, 1)
			var looks []time.Duration
			go func() {
				_ = s.Run(t.Context(), func(e event.Event) {
					l := e.Body.(*event.Look)
					looks = append(looks, time.Since(began)/time.Second)
					if want := test.tries.Unanswered() || len(test.gone) > 0; l.ContainerID != "a" || l.NetNS != pod || len(l.Obstacles) == 1 != want || l.Connected != (len(looks) == len(test.looks) && len(test.acts) == 3 && name != "stopped") {
						t.Errorf("%s: %+v", name, l)
					}
				})
			}()
			s.Await(setUp(pod.Key))
			s.Await(setUp("8")) // over the limit
			for _, act := range test.acts {
				act(s)
				synctest.Wait()
			}
			harness.EqualSlices(t, looks, test.looks, name)
			if looked != test.looked {
				t.Errorf("%s: the node was looked at %d times", name, looked)
			}
		})
	}
}

func TestABurstOfSilentPodsSharesLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks, pods atomic.Int64
		s := New(Node{
			Tries: func(*procfs.Residents, []event.Namespace) map[event.Namespace]*event.Tries { return nil },
			InTheWay: func(_ context.Context, sandboxes []string, _ bool) map[string][]event.Obstacle {
				looks.Add(1)
				pods.Add(int64(len(sandboxes)))
				return nil
			},
		}, 2*time.Second, 100)
		go func() { _ = s.Run(t.Context(), func(event.Event) {}) }()
		for i := range 30 {
			s.Await(model.Connected{NetNS: event.Namespace{Key: strconv.Itoa(i)}, End: clock.Monotonic()})
			time.Sleep(100 * time.Millisecond)
		}
		synctest.Wait()
		if looks.Load() > 2 || pods.Load() == 0 {
			t.Errorf("after 3 s, of which the first pods were silent for 2: %d looks at %d pods", looks.Load(), pods.Load())
		}
		time.Sleep(2500 * time.Millisecond)
		synctest.Wait()
		if looks.Load() > 4 || pods.Load() < 30 {
			t.Errorf("after 5.5 s: %d looks at %d pods", looks.Load(), pods.Load())
		}
	})
}

// dropping records what it is asked for, and has seen one drop.
type dropping struct{ asked []string }

func (d *dropping) note(what string, in event.Namespace) {
	d.asked = append(d.asked, what+" "+in.Key)
}

func (d *dropping) Follow(in event.Namespace, addresses []string, _ int64) {
	d.note("follow "+strings.Join(addresses, ","), in)
}
func (d *dropping) Asks(in event.Namespace) { d.note("asks", in) }
func (d *dropping) Seen(event.Namespace) []event.Drop {
	return []event.Drop{{Place: "nft_do_chain", Count: 2}}
}
func (d *dropping) Forget(in event.Namespace) { d.note("forget", in) }

// A pod's drops are observed from its setup to its connection; unanswered datagrams are noted, and a look has drops.
func TestDropsOfAPodThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dropping{}
		s := New(Node{
			Tries: func(_ *procfs.Residents, all []event.Namespace) map[event.Namespace]*event.Tries {
				return map[event.Namespace]*event.Tries{all[0]: {Asked: 2, Answered: 1}}
			},
			InTheWay: func(context.Context, []string, bool) map[string][]event.Obstacle { return nil },
			Drops:    func() source.Drops { return d },
		}, 10*time.Second, 1)
		var looks []event.Look
		go func() { _ = s.Run(t.Context(), func(e event.Event) { looks = append(looks, *e.Body.(*event.Look)) }) }()
		pod := event.Namespace{Key: "7"}
		c := model.Connected{NetNS: pod, Addresses: []string{"10.0.0.2/24"}, End: clock.Monotonic()}
		s.Await(c)
		time.Sleep(15 * time.Second)
		c.At = clock.Monotonic()
		s.Await(c)
		synctest.Wait()
		s.Connected(pod)
		harness.EqualSlices(t, d.asked, []string{"follow 10.0.0.2/24 7", "asks 7", "forget 7"})
		for _, l := range looks {
			harness.DeepEqual(t, l.Drops, d.Seen(pod))
		}
		harness.Equal(t, len(looks), 2, "looks")
	})
}

func TestLooksWithoutRoomAreCounted(t *testing.T) {
	s := New(Node{}, time.Second, 2)
	for i := range 5 {
		s.Want("a", event.Want{})
		s.Await(model.Connected{NetNS: event.Namespace{Key: strconv.Itoa(i)}})
	}
	harness.Equal(t, s.Stats().Readings[0].Value, float64(6), "skipped")
}

// Calls that wait share a look, which is never older than their failure.
func TestFailedCallsShareALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looked []event.Want
		s := New(Node{Found: func(_ context.Context, w event.Want) *event.Found {
			looked = append(looked, w)
			return &event.Found{Kind: w.Kind, Name: w.Name}
		}}, time.Second, 8)
		cni0, cni1 := event.Want{Kind: event.FoundBridge, Name: "cni0"}, event.Want{Kind: event.FoundBridge, Name: "cni1"}
		s.Want("a", cni0)
		s.Want("b", cni1)
		s.Want("c", cni0)
		var sent []string
		go func() {
			_ = s.Run(t.Context(), func(e event.Event) {
				l := e.Body.(*event.Look)
				sent = append(sent, l.ContainerID+" "+l.Found.Name)
			})
		}()
		synctest.Wait()
		s.Want("d", cni1)
		time.Sleep(breath)
		synctest.Wait()
		harness.EqualSlices(t, looked, []event.Want{cni0, cni1, cni1})
		harness.EqualSlices(t, sent, []string{"a cni0", "c cni0", "b cni1", "d cni1"})
	})
}

// Before: thirty pods of a tenant that fail in networks of their own kept looks from all calls for nine seconds.
func TestALookThatComesTooLateIsLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Node{Found: func(_ context.Context, w event.Want) *event.Found {
			time.Sleep(300 * time.Millisecond)
			return &event.Found{Name: w.Network}
		}}, time.Second, 64)
		for i := range 30 {
			s.Want("a", event.Want{Network: strconv.Itoa(i)})
		}
		looked := map[string]time.Duration{}
		began := time.Now()
		go func() {
			_ = s.Run(t.Context(), func(e event.Event) {
				looked[e.Body.(*event.Look).Found.Name] = time.Since(began)
			})
		}()
		time.Sleep(time.Second)
		s.Want("b", event.Want{Network: "pods"})
		time.Sleep(time.Minute)
		synctest.Wait()
		harness.DeepEqual(t, looked, map[string]time.Duration{"0": 300 * time.Millisecond, "1": 600 * time.Millisecond, "pods": 1300 * time.Millisecond})
		harness.Equal(t, s.Stats().Readings[0].Value, float64(28), "skipped")
	})
}
