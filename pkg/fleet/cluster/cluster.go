// Package cluster queries the sidecars with the user's rights, by the API server's exec (docs/fleet.md).
package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/cniscope/cniscope/pkg/fleet"
	"github.com/cniscope/cniscope/pkg/fleet/kube"
	"github.com/cniscope/cniscope/pkg/text"
)

const (
	// Selector selects cniscope's pods, also with nameOverride.
	Selector = "app.kubernetes.io/part-of=cniscope"
	// DefaultNamespace is cniscope's default namespace.
	DefaultNamespace = "cniscope"
	pageSize         = 500
)

// Cluster acts with a user's rights.
type Cluster struct {
	config                      *rest.Config
	core, batch, authentication *rest.RESTClient
}

// New returns a kubeconfig's cluster, without a request.
func New(config *rest.Config) (*Cluster, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 50, 100 // as kubectl; execs do not count
	if config.ContentType == "" {
		config.AcceptContentTypes = strings.Join([]string{runtime.ContentTypeProtobuf, runtime.ContentTypeJSON}, ",")
		config.ContentType = runtime.ContentTypeProtobuf
	}
	core, err := kube.Client(config, corev1.SchemeGroupVersion, corev1.AddToScheme)
	if err != nil {
		return nil, err
	}
	batch, err := kube.Client(config, batchv1.SchemeGroupVersion, batchv1.AddToScheme)
	if err != nil {
		return nil, err
	}
	authentication, err := kube.Client(config, authenticationv1.SchemeGroupVersion, authenticationv1.AddToScheme)
	return &Cluster{config, core, batch, authentication}, err
}

// Reader is a node's query sidecar.
type Reader struct {
	Node, Namespace, Pod string
	Unready              string
	// Doubtful marks an unready pod, maybe of a dead node. It is queried first, so that timeouts overlap.
	Doubtful bool
}

// ErrNoReaders means that no sidecar was found.
var ErrNoReaders = errors.New("no cniscope that can be asked")

// Readers returns one sidecar per node, doubtful first. An empty namespace means DefaultNamespace, then all. The
// error is a *Refusal or wraps ErrNoReaders. Several namespaces are an error: one may hold fake sidecars.
func (c *Cluster) Readers(ctx context.Context, namespace string) ([]Reader, error) {
	if namespace != "" {
		found, err := c.readersIn(ctx, namespace)
		if err == nil && len(found) == 0 {
			err = fmt.Errorf("%w in namespace %s: is cniscope installed there, with its reader (reader.enabled=true)? "+
				"--cniscope-namespace says where to look", ErrNoReaders, namespace)
		}
		return found, err
	}
	found, refused := c.readersIn(ctx, DefaultNamespace)
	if len(found) > 0 {
		return found, nil
	}
	found, err := c.readersIn(ctx, metav1.NamespaceAll)
	switch {
	case errors.As(err, new(*Refusal)):
		if refused != nil {
			return nil, refused
		}
		return nil, fmt.Errorf("%w in namespace %s, and you may not list pods in all namespaces; set "+
			"--cniscope-namespace NAMESPACE", ErrNoReaders, DefaultNamespace)
	case err != nil:
		return nil, err
	case len(found) == 0:
		return nil, fmt.Errorf("%w in any namespace; install chart 0.3.0 or later with reader.enabled=true", ErrNoReaders)
	}
	if in := namespaces(found); len(in) > 1 {
		return nil, fmt.Errorf("pods in several namespaces have cniscope's label: %s; set --cniscope-namespace to a "+
			"namespace that you trust", strings.Join(in, ", "))
	}
	return found, nil
}

func namespaces(all []Reader) (names []string) {
	for _, r := range all {
		names = append(names, r.Namespace)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (c *Cluster) readersIn(ctx context.Context, namespace string) ([]Reader, error) {
	type place struct{ namespace, node string }
	byNode := map[place]Reader{}
	err := c.eachPod(ctx, namespace, Selector, func(p *corev1.Pod) {
		r, ok := readerOf(p)
		at := place{r.Namespace, r.Node}
		if known, there := byNode[at]; ok && (!there || known.Unready != "") {
			byNode[at] = r
		}
	})
	if err != nil {
		return nil, c.explain(ctx, err, right{verb: "list", resource: "pods", namespace: namespace, role: Operator})
	}
	all := make([]Reader, 0, len(byNode))
	for _, r := range byNode {
		all = append(all, r)
	}
	doubtful := map[bool]int{true: -1}
	slices.SortFunc(all, func(a, b Reader) int {
		return cmp.Or(doubtful[a.Doubtful]-doubtful[b.Doubtful], cmp.Compare(a.Node, b.Node))
	})
	return all, nil
}

func readerOf(p *corev1.Pod) (r Reader, ok bool) {
	has := slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool { return c.Name == fleet.Container })
	if !has || p.Spec.NodeName == "" {
		return r, false
	}
	ready := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
	return Reader{
		Node: p.Spec.NodeName, Namespace: p.Namespace, Pod: p.Name,
		Unready: unready(p), Doubtful: !ready,
	}, true
}

func unready(p *corev1.Pod) string {
	if p.DeletionTimestamp != nil {
		return "its pod is being removed"
	}
	for _, s := range p.Status.ContainerStatuses {
		if s.Name == fleet.Container && s.State.Running == nil {
			why := "not started"
			if s.State.Waiting != nil && s.State.Waiting.Reason != "" {
				why = s.State.Waiting.Reason
			} else if s.State.Terminated != nil {
				why = "exited: " + s.State.Terminated.Reason
			}
			return "its reader does not run: " + text.Clean(why, text.Bound)
		}
	}
	if p.Status.Phase != corev1.PodRunning {
		return "its pod is " + strings.ToLower(string(cmp.Or(p.Status.Phase, corev1.PodUnknown)))
	}
	return ""
}

// Pod returns a pod, or a *Refusal.
func (c *Cluster) Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	p := &corev1.Pod{}
	if err := c.core.Get().Namespace(namespace).Resource("pods").Name(name).Do(ctx).Into(p); err != nil {
		return nil, c.explain(ctx, err, right{verb: "get", resource: "pods", namespace: namespace, role: View})
	}
	return p, nil
}

// PodNames returns pods with a prefix.
func (c *Cluster) PodNames(ctx context.Context, namespace, prefix string) (names []string, err error) {
	err = c.eachPod(ctx, namespace, "", func(p *corev1.Pod) {
		if strings.HasPrefix(p.Name, prefix) {
			names = append(names, p.Name)
		}
	})
	return names, err
}

func (c *Cluster) eachPod(ctx context.Context, namespace, selector string, take func(*corev1.Pod)) error {
	for after := ""; ; {
		var page corev1.PodList
		err := c.core.Get().Namespace(namespace).Resource("pods").Param("labelSelector", selector).
			Param("limit", strconv.Itoa(pageSize)).Param("continue", after).Do(ctx).Into(&page)
		if err != nil {
			return err
		}
		for i := range page.Items {
			take(&page.Items[i])
		}
		if after = page.Continue; after == "" {
			return nil
		}
	}
}

func (c *Cluster) who(ctx context.Context) string {
	review := &authenticationv1.SelfSubjectReview{}
	if c.authentication.Post().Resource("selfsubjectreviews").Body(review).Do(ctx).Into(review) != nil {
		return ""
	}
	return text.Clean(review.Status.UserInfo.Username, text.Bound)
}

// NotFound reports a missing object.
func NotFound(err error) bool { return apierrors.IsNotFound(err) }

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
