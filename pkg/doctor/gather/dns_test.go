package gather

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
)

func TestAnErrorIsAnAnswerOfDNS(t *testing.T) {
	for name, test := range map[string]struct {
		code         int // of the answer; -1: none
		failed, said bool
	}{
		"SERVFAIL":   {2, false, true},
		"NXDOMAIN":   {3, false, true},
		"no answer":  {-1, true, false},
		"no address": {0, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			server := harness.Must(net.ListenPacket("udp", "127.0.0.1:0"))(t)
			defer server.Close()
			go func() {
				for query := make([]byte, 512); ; {
					n, from, err := server.ReadFrom(query)
					if err != nil {
						return
					}
					if query[2], query[3] = 0x81, 0x80|byte(test.code); test.code >= 0 {
						_, _ = server.WriteTo(query[:n], from)
					}
				}
			}()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			failed, said := resolve(ctx, server.LocalAddr().String(), "kubernetes.default.svc.cluster.local.")
			if (failed != "") != test.failed || (said != "") != test.said {
				t.Errorf("failed %q, said %q", failed, said)
			}
		})
	}
	failed, said := resolve(t.Context(), "127.0.0.1:1", "kubernetes.default.svc.cluster.local.")
	if failed == "" || said != "" {
		t.Errorf("without a server: failed %q, said %q", failed, said)
	}
}
