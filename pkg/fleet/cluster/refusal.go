package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/cniscope/cniscope/pkg/text"
)

// ErrUnreachable means that the API server did not answer.
var ErrUnreachable = errors.New("no answer from the API server")

// Role grants a right.
type Role string

// Roles of cniscope's chart, bound in its namespace, and of Kubernetes.
const (
	Operator Role = "cniscope-operator"
	View     Role = "view"
	Edit     Role = "edit"
)

type right struct {
	verb, resource, namespace string
	role                      Role
}

// Refusal names the missing right.
type Refusal struct {
	says string
	err  error
}

func (r *Refusal) Error() string { return r.says }

func (r *Refusal) Unwrap() error { return r.err }

func (c *Cluster) explain(ctx context.Context, err error, missing right) error {
	switch {
	case apierrors.IsForbidden(err):
		return &Refusal{missing.says(c.who(ctx)), err}
	case apierrors.IsUnauthorized(err):
		return &Refusal{"the API server does not know you: log in again, as for kubectl (kubectl auth whoami)", err}
	}
	if dial, is := errors.AsType[*net.OpError](err); is && dial.Op == "dial" {
		err = fmt.Errorf("%w; set KUBECONFIG or --kubeconfig if the cluster is elsewhere", c.silent(dial.Err))
	} else if mute, is := errors.AsType[*url.Error](err); is && mute.Timeout() {
		err = c.silent(mute.Err)
	}
	return &cleaned{err}
}

func (c *Cluster) silent(err error) error {
	return fmt.Errorf("%w %s: %w", ErrUnreachable, c.config.Host, err)
}

func (m right) says(user string) string {
	you, subject := "you", "--user YOU"
	if user != "" {
		you, subject = "you ("+user+")", "--user "+user
		if account, ok := strings.CutPrefix(user, "system:serviceaccount:"); ok {
			subject = "--serviceaccount " + account
		}
	}
	kind, called := "role", " (of another release: one that ends so, see kubectl get roles -n "+m.namespace+")"
	if m.role != Operator {
		kind, called = "clusterrole", ""
	}
	if m.namespace == "" {
		return fmt.Sprintf("%s may not %s %s in all namespaces; a cluster administrator can grant that right", you, m.verb,
			m.resource)
	}
	return fmt.Sprintf("%s may not %s %s in namespace %s. The role %s grants that right; an administrator of that "+
		"namespace can grant the role%s:\n"+
		"  kubectl create rolebinding NAME -n %s --%s %s %s",
		you, m.verb, m.resource, m.namespace, m.role, called, m.namespace, kind, m.role, subject)
}

type cleaned struct{ error }

func (c *cleaned) Error() string { return text.Clean(c.error.Error(), 1024) }

func (c *cleaned) Unwrap() error { return c.error }
