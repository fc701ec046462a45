package gather

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/test/harness"
)

// A function that ignores the end of ctx is abandoned with an error.
func TestNothingHoldsTheFactsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		forever := make(chan struct{})
		var wg sync.WaitGroup
		var quick, polite, deaf fact.Of[int]
		find(ctx, &wg, &quick, func(context.Context) (int, error) { return 7, nil })
		find(ctx, &wg, &polite, func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 1, errors.New("looking at process 12")
		})
		find(ctx, &wg, &deaf, func(context.Context) (int, error) {
			<-forever
			return 3, nil
		})
		wg.Wait()
		if quick.Value != 7 || quick.Err != nil {
			t.Errorf("who answers: %+v", quick)
		}
		if polite.Err == nil || polite.Err.Error() != "looking at process 12" {
			t.Errorf("who stops: %+v", polite)
		}
		if deaf.Value != 0 || !errors.Is(deaf.Err, context.DeadlineExceeded) || !strings.Contains(deaf.Err.Error(), "no answer in time") {
			t.Errorf("who does not: %+v", deaf)
		}
		close(forever)
	})
}

// answering repeats a plugin's text.
type answering struct {
	cri.RuntimeServiceClient
	err error
}

const told = "Xq7CanaryTokenZ9t4421"

func (a answering) Status(context.Context, *cri.StatusRequest, ...grpc.CallOption) (*cri.StatusResponse, error) {
	return &cri.StatusResponse{Info: map[string]string{"lastCNILoadStatus": "bad token " + told}, Status: &cri.RuntimeStatus{Conditions: []*cri.RuntimeCondition{
		{Type: cri.RuntimeReady, Message: "bad token " + told}, {Type: cri.NetworkReady, Message: "bad token " + told},
	}}}, a.err
}

func TestTextsOfTheRuntimeAndOfKubeletAreRedacted(t *testing.T) {
	c, _ := askCRI(t.Context(), answering{}, fact.Runtime{Name: "containerd"}, fact.Options{ConfDir: "/etc/cni/net.d"})
	_, err := askCRI(t.Context(), answering{err: status.Error(codes.Unavailable, "bad token "+told)}, fact.Runtime{}, fact.Options{})
	kubelet := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "bad token "+told, http.StatusInternalServerError)
	}))
	defer kubelet.Close()
	health := askKubelet(t.Context(), kubelet.Listener.Addr().String())
	for what, text := range map[string]string{
		"the runtime's condition": c.ReadyReason, "the network's condition": c.NetworkReason, "the load status": c.LastLoad,
		"the error": fmt.Sprint(err), "kubelet's answer": health.Body,
	} {
		if strings.Contains(text, told) || !strings.Contains(text, "bad token ‹base64 21›") {
			t.Errorf("%s: %q", what, text)
		}
	}
	harness.Equal(t, status.Code(err), codes.Unavailable, "the code is lost", err)
}

// The protocol switch once kept the connection forever.
func TestTheKubeletsPortMayHoldTheQuestion(t *testing.T) {
	gone := make(chan struct{})
	stranger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		harness.Check(t, err)
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		_, _ = io.Copy(io.Discard, c)
		_ = c.Close()
		close(gone)
	}))
	defer stranger.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	harness.Equal(t, askKubelet(ctx, stranger.Listener.Addr().String()).Status, http.StatusSwitchingProtocols, "status")
	<-gone
}
