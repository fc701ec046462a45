package cluster

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/cniscope/cniscope/pkg/text"
)

// Event is a pod's Event, with printable texts.
type Event struct {
	Time    time.Time `json:"time"`
	Count   int       `json:"count"`
	Type    string    `json:"type"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	From    string    `json:"from,omitempty"`
	Node    string    `json:"node,omitempty"`
}

const eventsMost = 500

// Events returns a pod's Events, oldest first, also after its deletion. uid excludes namesakes.
func (c *Cluster) Events(ctx context.Context, namespace, pod, uid string) ([]Event, error) {
	of := fields.Set{"involvedObject.kind": "Pod", "involvedObject.name": pod}
	if uid != "" {
		of["involvedObject.uid"] = uid
	}
	var list corev1.EventList
	err := c.core.Get().Namespace(namespace).Resource("events").Param("fieldSelector", of.String()).
		Param("limit", strconv.Itoa(eventsMost)).Do(ctx).Into(&list)
	if err != nil {
		return nil, c.explain(ctx, err, right{verb: "list", resource: "events", namespace: namespace, role: View})
	}
	all := []Event{}
	for i := range list.Items {
		all = append(all, eventOf(&list.Items[i]))
	}
	slices.SortStableFunc(all, func(a, b Event) int { return a.Time.Compare(b.Time) })
	return all, nil
}

func eventOf(e *corev1.Event) Event {
	found := Event{
		Count: max(1, int(e.Count)), Type: text.Clean(e.Type, text.Bound), Reason: text.Clean(e.Reason, text.Bound),
		Message: text.Clean(e.Message, 1024),
		From:    text.Clean(cmp.Or(e.Source.Component, e.ReportingController), text.Bound),
		Node:    text.Clean(e.Source.Host, text.Bound),
	}
	for _, t := range []time.Time{
		e.LastTimestamp.Time, e.EventTime.Time, e.FirstTimestamp.Time,
		e.CreationTimestamp.Time,
	} {
		if found.Time.IsZero() {
			found.Time = t.UTC()
		}
	}
	if e.Series != nil {
		found.Count, found.Time = max(found.Count, int(e.Series.Count)), e.Series.LastObservedTime.UTC()
	}
	return found
}
