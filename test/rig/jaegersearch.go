//go:build linux

package rig

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
)

// Search finds traces like Jaeger's search form: those with a span of the service that has all tags, itself or in its
// process. It returns sorted ids in hex.
func (j *Jaeger) Search(ctx context.Context, service string, tags map[string]string) ([]string, error) {
	form, err := json.Marshal(tags)
	if err != nil {
		return nil, err
	}
	v := url.Values{"service": {service}, "tags": {string(form)}, "limit": {"10000"}, "start": {"1"}}
	body, err := j.get(ctx, "/api/traces?"+v.Encode())
	if err != nil || body == nil {
		return nil, err
	}
	var answer struct {
		Data []struct {
			TraceID string `json:"traceID"`
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("read Jaeger's search: %w", err)
	}
	var ids []string
	for _, trace := range answer.Data {
		ids = append(ids, trace.TraceID)
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}
