//go:build linux

package doctor

import (
	"fmt"
	"log/slog"
	"net"
	"testing"

	"github.com/cniscope/cniscope/pkg/doctor"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

func TestAnEndpointThatTakesNoSpansIsFound(t *testing.T) {
	n := newNode(t, rig.Options{})
	plain := n.toml
	j := harness.Must(rig.StartJaeger(n.ctx, rig.JaegerOptions{Log: slog.New(slog.NewTextHandler(t.Output(), nil))}))(t)
	t.Cleanup(func() { harness.Check(t, j.Close()) })

	n.toml = plain + fmt.Sprintf("[export.otlp]\nendpoint = %q\n", j.OTLP())
	n.silent("otlp")
	harness.Until(n, "Jaeger has the trial span", func() bool {
		found, err := j.FindTraces(n.ctx, rig.Query{Service: "cniscope", Operation: "cniscope doctor"})
		return err == nil && len(found) > 0
	})

	n.toml = plain + fmt.Sprintf("[export.otlp]\nendpoint = %q\n", j.OTLPHTTP())
	n.finds("otlp", doctor.Warning, "rejects spans", "http://HOST:4318/v1/traces")
	n.toml = plain + fmt.Sprintf("[export.otlp]\nendpoint = %q\n", j.OTLPHTTP()+"/v1/traces")
	n.silent("otlp")
	n.toml = plain + fmt.Sprintf("[export.otlp]\nendpoint = %q\n", j.OTLP()+"/v1/traces")
	n.finds("otlp", doctor.Warning, "rejects spans", "http://HOST:4317")

	l := harness.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	n.toml = plain + fmt.Sprintf("[export.otlp]\nendpoint = \"http://%s\"\n", l.Addr())
	n.finds("otlp", doctor.Warning, l.Addr().String(), "firewall")
	t.Logf("doctor took %s with an endpoint that says nothing", n.examine().Took)

	harness.Check(t, j.Close())
	n.toml = plain + fmt.Sprintf("[export.otlp]\nendpoint = %q\n", j.OTLP())
	n.finds("otlp", doctor.Warning, "connection refused", "start the Collector or the backend")
}
