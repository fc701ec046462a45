//go:build linux

package neighbours

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"time"
)

// promised bounds an answer: the default timeoutSeconds of a kubelet's probe is 1 s.
const promised = time.Second

// live queries /healthz as a kubelet does, and a server without attackers for comparison.
func (n *node) live(ctx context.Context) {
	control := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer control.Close()
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for ctx.Err() == nil {
		took, err := ask(&client, "http://"+n.metrics+"/healthz")
		n.probes = append(n.probes, took)
		if err != nil {
			n.failed++
			n.Log("liveness: ", err)
		}
		took, err = ask(&client, control.URL)
		n.controls = append(n.controls, took)
		if err != nil {
			n.Error("the server that nobody attacks: ", err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (n *node) lived(pid int) {
	n.Helper()
	asked, machine, slow := len(n.probes), quantile(n.controls, 0.99), 0
	for _, took := range n.probes {
		if took > promised+machine {
			slow++
		}
	}
	n.Logf("a server that nobody attacks: p50 %s p99 %s", quantile(n.controls, 0.5), machine)
	n.Logf("/healthz: %d asked, %d failed, p50 %s p99 %s max %s", asked, n.failed, quantile(n.probes, 0.5), quantile(n.probes, 0.99), quantile(n.probes, 1))
	if most := max(1, asked/100); slow > most || n.failed > most { // one in fewer than 100 is allowed
		n.Errorf("of %d questions whether it lives %d took longer than %s, %d failed; %d may", asked, slow, promised+machine, n.failed, most)
	}
	if err := syscall.Kill(pid, 0); err != nil || strings.Contains(n.scope.LogText(), "panic") {
		n.Errorf("cniscope did not survive: %v", err)
	}
	n.probes, n.controls, n.failed = nil, nil, 0
}

func ask(client *http.Client, url string) (time.Duration, error) {
	began := time.Now()
	answer, err := client.Get(url)
	took := time.Since(began)
	if err != nil {
		return took, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return took, errors.New(answer.Status)
	}
	return took, nil
}
