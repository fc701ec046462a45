package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	execerrors "k8s.io/client-go/util/exec"

	"github.com/cniscope/cniscope/pkg/fleet"
	"github.com/cniscope/cniscope/test/harness"
)

func pod(namespace, name, node string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: fleet.Container}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

func clusterOf(t *testing.T, pods ...corev1.Pod) *Cluster {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		list := corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}}
		for _, p := range pods {
			if within, only := strings.CutPrefix(r.URL.Path, "/api/v1/namespaces/"); !only ||
				strings.HasPrefix(within, p.Namespace+"/") {
				list.Items = append(list.Items, p)
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(list)
	}))
	t.Cleanup(server.Close)
	return harness.Must(New(&rest.Config{Host: server.URL}))(t)
}

func TestAMuteAPIServerIsNotReached(t *testing.T) {
	mute := harness.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer mute.Close()
	host := "https://" + mute.Addr().String()
	c := harness.Must(New(&rest.Config{Host: host, Timeout: 50 * time.Millisecond}))(t)
	_, err := c.Readers(t.Context(), "net")
	if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), host+": ") {
		t.Error(err)
	}
}

// What a user interrupts is removed again.
func TestStopRemovesTheJob(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasSuffix(r.URL.Path, "/pods"):
			cancel()
			_, _ = io.WriteString(w, `{"kind":"PodList","apiVersion":"v1"}`)
		case r.Method == http.MethodDelete:
			got = append(got, r.URL.Path+" "+strconv.FormatBool(bytes.Contains(body, []byte("Background"))))
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
		default:
			_, _ = io.WriteString(w, `{"kind":"Job","apiVersion":"batch/v1","metadata":{"name":"one"}}`)
		}
	}))
	defer server.Close()
	c := harness.Must(New(&rest.Config{Host: server.URL}))(t)
	_, stop, err := c.Start(ctx, Once{Namespace: "shop", Node: "node-1"})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	var said bytes.Buffer
	harness.Check(t, stop(&said))
	harness.Equal(t, strings.Join(got, ", "), "/apis/batch/v1/namespaces/shop/jobs/one true", "removed")
	harness.Equal(t, said.String(), "removing job one and its pod from namespace shop\n")
}

type answers func(r *http.Request) (code int, body string)

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	code, body := a(r)
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(body)),
	}, nil
}

// A pod of a dead node stays; the right to get nodes is not needed.
func TestStopNamesThePodThatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := harness.Must(New(&rest.Config{Transport: answers(func(r *http.Request) (int, string) {
			switch {
			case strings.HasSuffix(r.URL.Path, "/nodes/node-1"):
				return http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`
			case strings.HasSuffix(r.URL.Path, "/pods"):
				cancel()
				return http.StatusOK, `{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"one-x"}}]}`
			case r.Method == http.MethodDelete:
				return http.StatusOK, `{"kind":"Status","apiVersion":"v1","status":"Success"}`
			}
			return http.StatusOK, `{"kind":"Job","apiVersion":"batch/v1","metadata":{"name":"one"}}`
		})}))(t)
		_, stop, err := c.Start(ctx, Once{Namespace: "shop", Node: "node-1"})
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := stop(io.Discard); err == nil || !strings.HasSuffix(err.Error(), "kubectl get pod -n shop one-x") {
			t.Error(err)
		}
	})
}

// A tenant can label a pod as a sidecar. No token may be sent to it, beside or instead of a real one.
func TestReadersOfAnotherNamespaceAreNotAsked(t *testing.T) {
	real1, real2 := pod("kube-system", "cniscope-1", "node-1"), pod("kube-system", "cniscope-2", "node-2")
	for name, forged := range map[string]corev1.Pod{
		"on a node without one": pod("mallory", "cniscope-x", "node-0"),
		"in place of one":       pod("mallory", "cniscope-x", "node-1"),
	} {
		for _, pods := range [][]corev1.Pod{{forged, real1, real2}, {real1, real2, forged}} {
			c := clusterOf(t, pods...)
			if found, err := c.Readers(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "kube-system, mallory") {
				t.Errorf("%s: %v, %v", name, found, err)
			}
			found, err := c.Readers(t.Context(), "kube-system")
			if err != nil || len(found) != 2 || found[0].Pod != "cniscope-1" {
				t.Errorf("%s: %v, %v", name, found, err)
			}
		}
	}
	if found, err := clusterOf(t, real1, real2).Readers(t.Context(), ""); err != nil || len(found) != 2 {
		t.Errorf("%v, %v", found, err)
	}
}

// A reader that does not know a question has another version.
func TestAReaderOfAnotherVersionIsNamed(t *testing.T) {
	for code, says := range map[int]string{
		fleet.Misused:  "unknown question x; install the same version of the chart and of kubectl cniscope",
		fleet.NoAnswer: "unknown question x",
	} {
		err := clusterOf(t).failure(t.Context(), Reader{}, execerrors.CodeExitError{Err: errors.New("exit"), Code: code}, "cniscope-reader: unknown question x\n")
		harness.Equal(t, err.Error(), says)
	}
}
