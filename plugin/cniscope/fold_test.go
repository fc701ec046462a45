package main

import (
	"bytes"
	"io"
	"iter"
	"path/filepath"
	"slices"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/cniscope/cniscope/pkg/attr"
	"github.com/cniscope/cniscope/pkg/pipeline"
	"github.com/cniscope/cniscope/pkg/record"
	"github.com/cniscope/cniscope/pkg/replay"
	"github.com/cniscope/cniscope/pkg/settings"
	"github.com/cniscope/cniscope/pkg/show"
	"github.com/cniscope/cniscope/pkg/trace"
	"github.com/cniscope/cniscope/test/harness"
)

// resultsOf are a recording's operations, in the order they ended.
func resultsOf(t *testing.T, recording string) (all []*pipeline.Judged) {
	t.Helper()
	reader := harness.Must(record.Open(t.Context(), recording))(t)
	defer reader.Close()
	in, _, err := settings.In(reader.Header())
	harness.Check(t, err)
	in.Judge.All = true
	harness.Check(t, replay.Each(t.Context(), reader, in, func(r pipeline.Result) error {
		if r, is := r.(*pipeline.Judged); is {
			all = append(all, r)
		}
		return nil
	}))
	return all
}

// operationsOf are the spans of a recording's operations.
func operationsOf(t *testing.T, recording string) (all []*tracepb.ResourceSpans) {
	t.Helper()
	for _, r := range resultsOf(t, recording) {
		all = append(all, r.Read())
	}
	return all
}

// Each recorded scenario has the same verdicts with fold_commands and without: no call's span differs, none that
// was slow or failed, and what is said of all of them in a list is the same.
func TestFoldingKeepsVerdicts(t *testing.T) {
	recorded := harness.Must(filepath.Glob("../../pkg/judge/testdata/*.rec.gz"))(t)
	examples := harness.Must(filepath.Glob(filepath.Join(recordings, "*.rec*")))(t)
	recorded = append(append(recorded, examples...), "../../docs/verdicts.rec.gz")
	verdicts := 0
	for _, file := range recorded {
		t.Run(filepath.Base(file), func(t *testing.T) {
			each := operationsOf(t, file)
			var few []*tracepb.ResourceSpans
			for _, spans := range each {
				few = append(few, trace.Fold(spans))
				verdicts += sameWhereItMatters(t, spans, few[len(few)-1])
			}
			if got, want := summed(t, slices.Values(few)), summed(t, slices.Values(each)); got != want {
				t.Errorf("folded, the list is another one: %s", firstDifference(got, want))
			}
		})
	}
	if verdicts < 50 {
		t.Errorf("only %d verdicts were seen", verdicts)
	}
}

func summed(t *testing.T, operations iter.Seq[*tracepb.ResourceSpans]) string {
	t.Helper()
	var out bytes.Buffer
	harness.Check(t, show.Summary(&out, operations, show.Options{Width: 120}))
	return out.String()
}

// sameWhereItMatters compares calls, and what was slow or failed, and returns the number of verdicts.
func sameWhereItMatters(t *testing.T, each, few *tracepb.ResourceSpans) (verdicts int) {
	t.Helper()
	now := map[string]*tracepb.Span{}
	for _, s := range few.ScopeSpans[0].Spans {
		now[string(s.SpanId)] = s
	}
	for _, s := range each.ScopeSpans[0].Spans {
		said := map[string]string{}
		for _, kv := range s.Attributes {
			said[kv.Key] = kv.Value.String()
		}
		call, slow := said[string(attr.KindKey)] == `string_value:"call"`, said[string(attr.SlowKey)] != ""
		if said[string(attr.VerdictKey)] != "" {
			verdicts++
		}
		if is := now[string(s.SpanId)]; (call || slow || s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR) && !proto.Equal(is, s) {
			t.Errorf("%s is now\n%v, was\n%v", s.Name, is, s)
		}
	}
	return verdicts
}

// A recording holds each command, whatever the node's options were: only who asks for it sees series.
func TestShowFoldsOnRequest(t *testing.T) {
	for _, c := range []struct {
		fold bool
		want string
	}{{false, "netlink NFT_MSG_DELCHAIN"}, {true, "sum 64.3ms  exit 1, exit 4  the longest 12.8ms"}} {
		var out bytes.Buffer
		t.Setenv("COLUMNS", "160")
		o := showOptions{format: "text", color: "never", all: true, fold: c.fold, pod: "shop/web-0"}
		harness.Check(t, showFile(t.Context(), &out, io.Discard, recordings+"/three-pods.rec", o))
		for _, other := range []string{"netlink NFT_MSG_DELCHAIN", "sum 64.3ms  exit 1, exit 4  the longest 12.8ms"} {
			if is := bytes.Contains(out.Bytes(), []byte(other)); is != (other == c.want) {
				t.Errorf("--fold-commands %t: %q is in it: %t\n%s", c.fold, other, is, out.String())
			}
		}
	}
}
