package probe

import (
	"net"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

func init() {
	acts["panic"] = func(after string) error {
		var none *net.IPNet
		if after == "logs" {
			println(strings.Repeat("a long log\n", 2000))
		}
		println(none.IP.String())
		return nil
	}
	acts["ask"] = func(address string) error {
		c, err := net.Dial("udp", address)
		if err != nil {
			return err
		}
		return c.Close()
	}
}

// The last words of a plugin that panics reach its result, also after many lines of a log.
func TestAPluginThatPanics(t *testing.T) {
	for _, before := range []string{"", "logs"} {
		cmd := acting(t, "panic", before)
		cmd.Stdin = strings.NewReader(`{"cniVersion":"1.0.0","name":"pods","type":"panic"}`)
		var out, said strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &said
		o := observe(t, func(*observed) { _ = cmd.Run() })
		results := all[*event.Result](o)
		if len(results) != 1 {
			t.Fatalf("%d results; it said %s", len(results), said.String())
		}
		harness.Says(t, results[0].Stderr, "panic: runtime error: invalid memory address or nil pointer dereference (words_linux_test.go:")
	}
}

// A plugin asks a DNS server over UDP: the address is known, and when it stops waiting.
func TestAPluginThatAsksADNSServer(t *testing.T) {
	for address, network := range map[string]string{"127.0.6.53:53": "udp", "[::1]:53": "udp", "127.0.6.53:5353": ""} {
		o := run(t, acting(t, "ask", address))
		connects, closes := all[*event.Connect](o), all[*event.Close](o)
		if network == "" {
			harness.Equal(t, len(connects), 0, "connections to another port")
			continue
		}
		if len(connects) != 1 || len(closes) != 1 || connects[0].Network != network || connects[0].Address != address {
			t.Errorf("%s: connects %s, closes %s", address, printed(o, connects), printed(o, closes))
		}
	}
}
