// Package cluster asks a Kubernetes cluster with the rights of whoever runs it: where cniscope's readers are,
// for a token to show them, and through the API server's exec what a reader has to say. docs/fleet.md
// describes the other side.
package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/cniscope/cniscope/pkg/fleet"
	"github.com/cniscope/cniscope/pkg/text"
)

const (
	// Selector finds cniscope's pods; that they have a reader is seen by its container.
	Selector = "app.kubernetes.io/name=cniscope"
	// DefaultNamespace is where cniscope is unless somebody says otherwise.
	DefaultNamespace = "cniscope"
	// pageSize is how many objects one answer of the API server may hold.
	pageSize = 500
)

// Cluster is one cluster, as one user sees it.
type Cluster struct {
	config         *rest.Config
	core           *coreclient.CoreV1Client
	authorization  *authorizationclient.AuthorizationV1Client
	authentication *authenticationclient.AuthenticationV1Client
}

// New returns the cluster that a kubeconfig names. Nothing is asked yet.
func New(config *rest.Config) (*Cluster, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 50, 100 // as kubectl's; execs are no requests of this client
	if config.ContentType == "" {
		config.AcceptContentTypes = strings.Join([]string{runtime.ContentTypeProtobuf, runtime.ContentTypeJSON}, ",")
		config.ContentType = runtime.ContentTypeProtobuf
	}
	core, err := coreclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	authorization, err := authorizationclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	authentication, err := authenticationclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &Cluster{config, core, authorization, authentication}, nil
}

// Reader is the pod through which a node answers.
type Reader struct {
	Node, Namespace, Pod string
	// Operator is the ServiceAccount, in Namespace, whose tokens see everything; empty if there is none.
	Operator string
	// Unready says why it need not be asked; empty if it may be.
	Unready string
	// Doubtful says that its pod is not ready: its node may be dead, or its network not ready, which is when its
	// answer is wanted most. It is asked before the others, so that waiting for it in vain costs no time of its own.
	Doubtful bool
}

// ErrNoReaders is returned where no cniscope with a reader is found.
var ErrNoReaders = errors.New("no cniscope that can be asked")

// Readers finds the readers in a namespace, one for each node: first the doubtful ones, then by the nodes' names. Where namespace
// is empty they are looked for in DefaultNamespace, and if there are none, in all namespaces, if the user may. The error is a
// *Refusal if the user may not list pods there, and wraps ErrNoReaders if there are none. Anybody can call a pod of their
// own a reader, and would be shown the asker's token: so readers of several namespaces are none.
func (c *Cluster) Readers(ctx context.Context, namespace string) ([]Reader, error) {
	if namespace != "" {
		found, err := c.readersIn(ctx, namespace)
		if err == nil && len(found) == 0 {
			err = fmt.Errorf("%w in namespace %s: is cniscope installed there, with its reader (reader.enabled=true)? --cniscope-namespace says where to look", ErrNoReaders, namespace)
		}
		return found, err
	}
	found, refused := c.readersIn(ctx, DefaultNamespace)
	if len(found) > 0 {
		return found, nil
	}
	found, err := c.readersIn(ctx, metav1.NamespaceAll)
	var refusal *Refusal
	switch {
	case errors.As(err, &refusal):
		if refused != nil {
			return nil, refused
		}
		return nil, fmt.Errorf("%w in namespace %s, and you may not look into others: say where it is, --cniscope-namespace NAMESPACE", ErrNoReaders, DefaultNamespace)
	case err != nil:
		return nil, err
	case len(found) == 0:
		return nil, fmt.Errorf("%w in any namespace: is it installed, with its reader (reader.enabled=true)?", ErrNoReaders)
	}
	if in := namespaces(found); len(in) > 1 {
		return nil, fmt.Errorf("pods of several namespaces say that they are cniscope's: %s. Say which one to believe, --cniscope-namespace NAMESPACE",
			strings.Join(in, ", "))
	}
	return found, nil
}

// namespaces are those of the readers, each once.
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
	options := metav1.ListOptions{LabelSelector: Selector, Limit: pageSize}
	for {
		page, err := c.core.Pods(namespace).List(ctx, options)
		if err != nil {
			return nil, c.explain(ctx, err, right{verb: "list", resource: "pods", namespace: namespace, role: Developer})
		}
		for i := range page.Items {
			r, ok := readerOf(&page.Items[i])
			at := place{r.Namespace, r.Node}
			if known, there := byNode[at]; ok && (!there || known.Unready != "") {
				byNode[at] = r
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			break
		}
	}
	all := make([]Reader, 0, len(byNode))
	for _, r := range byNode {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b Reader) int {
		if a.Doubtful != b.Doubtful {
			return map[bool]int{true: -1, false: 1}[a.Doubtful]
		}
		return cmp.Compare(a.Node, b.Node)
	})
	return all, nil
}

// readerOf is a pod as a reader; not ok if it is none, or on no node.
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
		Operator: p.Annotations[fleet.OperatorAnnotation], Unready: unready(p), Doubtful: !ready,
	}, true
}

// unready says why a reader cannot answer, as far as the API server knows: so nobody waits for a node that is
// known to be dead. cniscope itself need not be ready.
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
				why = "ended: " + s.State.Terminated.Reason
			}
			return "its reader does not run: " + text.Clean(why, text.Bound)
		}
	}
	if p.Status.Phase != corev1.PodRunning {
		return "its pod is " + strings.ToLower(string(cmp.Or(p.Status.Phase, corev1.PodUnknown)))
	}
	return ""
}

// Pod returns a pod. The error wraps the API server's; it is a *Refusal if the user may not read pods there.
func (c *Cluster) Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	p, err := c.core.Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, c.explain(ctx, err, right{verb: "get", resource: "pods", namespace: namespace, role: View})
	}
	return p, nil
}

// PodNames returns the names of a namespace's pods that begin with prefix.
func (c *Cluster) PodNames(ctx context.Context, namespace, prefix string) (names []string, err error) {
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := c.core.Pods(namespace).List(ctx, options)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			if strings.HasPrefix(page.Items[i].Name, prefix) {
				names = append(names, page.Items[i].Name)
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return names, nil
		}
	}
}

// Token returns a token of a ServiceAccount, for cniscope's audience, that lives ten minutes, the shortest there
// is. The error is a *Refusal if the user may not have one.
func (c *Cluster) Token(ctx context.Context, namespace, account string, role Role) (string, error) {
	const tenMinutes = int64(600)
	seconds := tenMinutes
	answer, err := c.core.ServiceAccounts(namespace).CreateToken(ctx, account, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{Audiences: []string{fleet.Audience}, ExpirationSeconds: &seconds},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", c.explain(ctx, err, right{
			verb: "create", resource: "serviceaccounts/token", name: account, namespace: namespace, role: role,
		})
	}
	return answer.Status.Token, nil
}

// MayBeOperator reports whether the user may have a token of the operator's ServiceAccount. It asks instead of trying, so
// that no audit log has a refusal.
func (c *Cluster) MayBeOperator(ctx context.Context, r Reader) bool {
	if r.Operator == "" {
		return false
	}
	review, err := c.authorization.SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: r.Namespace, Verb: "create", Resource: "serviceaccounts", Subresource: "token", Name: r.Operator,
		}},
	}, metav1.CreateOptions{})
	return err == nil && review.Status.Allowed
}

// who is what the API server calls the user; empty if it does not say.
func (c *Cluster) who(ctx context.Context) string {
	review, err := c.authentication.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return ""
	}
	return text.Clean(review.Status.UserInfo.Username, text.Bound)
}

// NotFound reports whether the API server knows no such object.
func NotFound(err error) bool { return apierrors.IsNotFound(err) }
