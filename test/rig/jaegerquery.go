//go:build linux

package rig

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

// Query selects traces with a span of a service and name that started within a time. Jaeger's v3 API cannot search by
// attribute.
type Query struct {
	Service   string
	Operation string
	// From and To default to a day around now.
	From, To time.Time
	// Limit bounds the traces. Default: 10,000.
	Limit int
}

// FindTraces returns traces; none is no error.
func (j *Jaeger) FindTraces(ctx context.Context, q Query) ([]*tracepb.ResourceSpans, error) {
	if q.From.IsZero() {
		q.From = time.Now().Add(-12 * time.Hour)
	}
	if q.To.IsZero() {
		q.To = time.Now().Add(12 * time.Hour)
	}
	if q.Limit == 0 {
		q.Limit = 10_000
	}
	v := url.Values{
		"query.start_time_min": {q.From.UTC().Format(time.RFC3339Nano)},
		"query.start_time_max": {q.To.UTC().Format(time.RFC3339Nano)},
		"query.num_traces":     {strconv.Itoa(q.Limit)},
		"query.raw_traces":     {"true"}, // otherwise Jaeger merges duplicates and shifts times
		"query.service_name":   {q.Service},
	}
	if q.Operation != "" {
		v.Set("query.operation_name", q.Operation)
	}
	return j.traces(ctx, "/api/v3/traces?"+v.Encode())
}

// Traces returns one trace by its id in hex; none is no error.
func (j *Jaeger) Traces(ctx context.Context, traceID string) ([]*tracepb.ResourceSpans, error) {
	return j.traces(ctx, "/api/v3/traces/"+url.PathEscape(traceID)+"?raw_traces=true")
}

// Services are the services with spans.
func (j *Jaeger) Services(ctx context.Context) ([]string, error) {
	body, err := j.get(ctx, "/api/v3/services")
	if err != nil {
		return nil, err
	}
	var answer struct{ Services []string }
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("read Jaeger's services: %w", err)
	}
	return answer.Services, nil
}

func (j *Jaeger) traces(ctx context.Context, path string) ([]*tracepb.ResourceSpans, error) {
	body, err := j.get(ctx, path)
	if err != nil || body == nil {
		return nil, err
	}
	return decodeTraces(body)
}

// get returns nothing if Jaeger found nothing.
func (j *Jaeger) get(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, j.QueryURL()+path, nil)
	if err != nil {
		return nil, err
	}
	answer, err := j.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask Jaeger: %w", err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("read Jaeger's answer: %w", err)
	}
	switch answer.StatusCode {
	case http.StatusOK:
		return body, nil
	case http.StatusNotFound:
		return nil, nil
	default:
		return nil, fmt.Errorf("jaeger answered %s to %s: %s", answer.Status, path, bytes.TrimSpace(body))
	}
}

// decodeTraces decodes a sequence of JSON objects with OTLP JSON in `result`.
func decodeTraces(body []byte) ([]*tracepb.ResourceSpans, error) {
	var all []*tracepb.ResourceSpans
	objects := json.NewDecoder(bytes.NewReader(body))
	objects.UseNumber()
	for {
		var chunk struct{ Result map[string]any }
		if err := objects.Decode(&chunk); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("read Jaeger's traces: %w", err)
		}
		base64IDs(chunk.Result)
		text, err := json.Marshal(chunk.Result)
		if err != nil {
			return nil, err
		}
		var data tracepb.TracesData
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(text, &data); err != nil {
			return nil, fmt.Errorf("read Jaeger's traces: %w", err)
		}
		all = append(all, data.ResourceSpans...)
	}
}

// base64IDs converts ids from OTLP JSON's hex to base64 of plain protobuf JSON, recognized by length.
func base64IDs(v any) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			base64IDs(e)
		}
	case map[string]any:
		for key, e := range v {
			if key != "traceId" && key != "spanId" && key != "parentSpanId" {
				base64IDs(e)
				continue
			}
			if s, ok := e.(string); ok && (len(s) == 32 || len(s) == 16) {
				if id, err := hex.DecodeString(s); err == nil {
					v[key] = base64.StdEncoding.EncodeToString(id)
				}
			}
		}
	}
}
