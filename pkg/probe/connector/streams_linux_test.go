package connector

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

// dials is the address that a child of the test calls.
const dials = "CNISCOPE_TEST_DIALS"

// TestDials is no test: it is a plugin that calls an agent.
func TestDials(t *testing.T) {
	network, address, is := strings.Cut(os.Getenv(dials), " ")
	if !is {
		t.Skip("it is a plugin of other tests")
	}
	c := harness.Must(net.Dial(network, address))(t)
	_, _ = c.Read(make([]byte, 1))
	harness.Check(t, c.Close())
	time.Sleep(3 * time.Second) // until the closed connection is noticed
}

func TestWhomAPluginHasCalled(t *testing.T) {
	self := harness.Must(os.Executable())(t)
	for network, address := range map[string]string{"unix": filepath.Join(t.TempDir(), "agent.sock"), "tcp": "127.0.0.1:0"} {
		t.Run(network, func(t *testing.T) {
			l := harness.Must(net.Listen(network, address))(t)
			defer l.Close()
			o := observe(t)
			cmd := plugin(t, fmt.Sprintf("sleep 0.05; exec %s -test.run '^TestDials$'", self))
			cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%s %s", dials, network, l.Addr()))
			harness.Check(t, cmd.Start())
			var made *event.Connect
			harness.Eventually(t, func() error {
				for _, e := range o.list() {
					if c, is := e.Body.(*event.Connect); is {
						made = c
						return nil
					}
				}
				return errors.New("nothing is said of the connection")
			})
			if made.Network != network || made.Address != l.Addr().String() && network == "tcp" || made.Socket == "" || filepath.Base(made.Address) != filepath.Base(l.Addr().String()) {
				t.Errorf("%+v, want one to %s", made, l.Addr())
			}
			answering, err := l.Accept()
			harness.Check(t, errors.Join(err, answering.Close()))
			harness.Check(t, cmd.Wait())
			o.tree(t)
			for _, e := range o.list() {
				if c, is := e.Body.(*event.Close); is && c.Socket == made.Socket && c.Process == made.Process {
					return
				}
			}
			t.Error("nothing is said of its end")
		})
	}
}

func TestWhoSleepsIsSaid(t *testing.T) {
	o := observe(t)
	harness.Check(t, plugin(t, "sleep 0.05; exec sleep 3").Run())
	o.tree(t)
	for _, e := range o.list() {
		if w, is := e.Body.(*event.Wait); is {
			if w.Kind != event.WaitSleep || e.Time <= w.Start {
				t.Errorf("%+v, for %s", w, time.Duration(e.Time-w.Start))
			}
			return
		}
	}
	t.Error("nothing is said of it")
}
