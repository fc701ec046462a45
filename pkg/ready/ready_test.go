package ready

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

// network is a runtime's answer, with a reason if the network is not ready.
func network(reason string) *cri.StatusResponse {
	return &cri.StatusResponse{Status: &cri.RuntimeStatus{Conditions: []*cri.RuntimeCondition{
		{Type: cri.RuntimeReady, Status: true},
		{Type: cri.NetworkReady, Status: reason == "", Reason: "NetworkPluginNotReady", Message: reason},
	}}}
}

// said lists the events of a source, each with its second, for a runtime with these answers.
func said(t *testing.T, length time.Duration, answers func(second int) (*cri.StatusResponse, error)) (lines []string) {
	t.Helper()
	return saidBy(t, Source{}, length, answers)
}

func saidBy(t *testing.T, source Source, length time.Duration, answers func(second int) (*cri.StatusResponse, error)) (lines []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		second := func() int { return int(time.Since(began) / time.Second) }
		ctx, cancel := context.WithTimeout(t.Context(), length)
		defer cancel()
		source.watch(ctx, func(e event.Event) {
			switch b := e.Body.(type) {
			case *event.Readiness:
				line := fmt.Sprintf("%d ready %v %s", second(), b.Ready, b.Reason)
				if b.Missing != "" {
					line += fmt.Sprintf("; %s: %s", b.Lacks, b.Missing)
				}
				if b.Overdue {
					line += "; overdue"
				}
				lines = append(lines, line)
			case *event.Degraded:
				lines = append(lines, fmt.Sprintf("%d restored %v", second(), b.Restored))
			}
		}, func(context.Context) (*cri.StatusResponse, error) { return answers(second()) })
	})
	return lines
}

func TestOnlyChangesAreTold(t *testing.T) {
	got := said(t, time.Minute, func(int) (*cri.StatusResponse, error) { return network(""), nil })
	harness.EqualSlices(t, got, []string{"0 ready true "})
}

func TestAReasonIsRedacted(t *testing.T) {
	got := said(t, time.Minute, func(int) (*cri.StatusResponse, error) {
		return network("plugin status: login with Xq7CanaryTokenZ9t4421 at https://root:h4rd@10.1.2.3:2379/v3 refused"), nil
	})
	want := []string{"0 ready false NetworkPluginNotReady: plugin status: login with ‹base64 21› at https://‹text 9›@10.1.2.3:2379/v3 refused"}
	harness.EqualSlices(t, got, want)
}

func TestTheEndOfAnOutageIsKnownToTheSecond(t *testing.T) {
	got := said(t, time.Minute, func(second int) (*cri.StatusResponse, error) {
		if second >= 20 && second < 33 {
			return network("cni plugin not initialized"), nil
		}
		return network(""), nil
	})
	want := []string{"0 ready true ", "20 ready false NetworkPluginNotReady: cni plugin not initialized", "33 ready true "}
	harness.EqualSlices(t, got, want)
}

func TestTheClocksAreTiedBeforeAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var told []string
		began := time.Now()
		Source{}.watch(ctx, func(e event.Event) {
			switch b := e.Body.(type) {
			case *event.Clock:
				told = append(told, "clock")
			case *event.Readiness:
				told = append(told, fmt.Sprintf("ready %v", b.Ready))
			}
		}, func(context.Context) (*cri.StatusResponse, error) {
			if time.Since(began) < 20*time.Second {
				return network(""), nil
			}
			return network("no"), nil
		})
		harness.EqualSlices(t, told, []string{"ready true", "clock", "ready false"})
	})
}

func TestARuntimeThatDoesNotAnswer(t *testing.T) {
	for name, broken := range map[string]func() (*cri.StatusResponse, error){
		"an error":            func() (*cri.StatusResponse, error) { return nil, errors.New("no such file") },
		"nothing of networks": func() (*cri.StatusResponse, error) { return &cri.StatusResponse{}, nil },
	} {
		t.Run(name, func(t *testing.T) {
			got := said(t, 2*time.Minute, func(second int) (*cri.StatusResponse, error) {
				if second >= 10 && second < 80 {
					return broken()
				}
				return network(""), nil
			})
			want := []string{"0 ready true ", "30 restored false", "80 restored true"}
			harness.EqualSlices(t, got, want)
		})
	}
}

func TestARuntimeWhoseCRIPluginDidNotStart(t *testing.T) {
	got := said(t, time.Minute, func(second int) (*cri.StatusResponse, error) {
		if second < 30 {
			return nil, status.Error(codes.Unimplemented, "unknown service runtime.v1.RuntimeService")
		}
		return network(""), nil
	})
	harness.EqualSlices(t, got, []string{"0 ready false the runtime serves no CRI, because its CRI plugin did not start", "30 ready true "})
}

func TestAnAnswerThatNeverComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		Source{}.watch(ctx, func(event.Event) { t.Error("told something") }, func(ctx context.Context) (*cri.StatusResponse, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		harness.Equal(t, time.Since(began), time.Second, "it took")
	})
}

func TestWhatIsMissingIsTold(t *testing.T) {
	looked := 0
	source := Source{Overdue: 12 * time.Second, Look: func(context.Context) (event.Lack, string) {
		if looked++; looked < 3 {
			return event.LackConfiguration, "nobody wrote"
		}
		return event.LackPlugin, "no plugin"
	}}
	got := saidBy(t, source, time.Minute, func(second int) (*cri.StatusResponse, error) {
		if second < 20 {
			return network("no"), nil
		}
		return network(""), nil
	})
	const no = " ready false NetworkPluginNotReady: no; "
	want := []string{"0" + no + "cni_configuration: nobody wrote", "10" + no + "cni_plugin: no plugin", "12" + no + "cni_plugin: no plugin; overdue", "20 ready true "}
	if !slices.Equal(got, want) || looked != 4 {
		t.Errorf("looked %d times: %q", looked, got)
	}
}
