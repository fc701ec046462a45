package cluster

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/cniscope/cniscope/pkg/text"
)

// Role is what gives a right.
type Role string

// The roles: two of cniscope's chart, bound in cniscope's namespace, and two of Kubernetes itself.
const (
	Developer Role = "cniscope-developer"
	Operator  Role = "cniscope-operator"
	Edit      Role = "edit"
	View      Role = "view"
)

// builtIn reports whether a role is one of Kubernetes itself.
func (r Role) builtIn() bool { return r == Edit || r == View }

// right is what a request takes.
type right struct {
	verb, resource, name, namespace string
	role                            Role
}

// Refusal is the API server's no, with the right that is missing and who can give it.
type Refusal struct {
	says string
	err  error
}

func (r *Refusal) Error() string { return r.says }

func (r *Refusal) Unwrap() error { return r.err }

// explain makes a *Refusal of a no, and leaves every other error as it is, but for its text.
func (c *Cluster) explain(ctx context.Context, err error, missing right) error {
	switch {
	case apierrors.IsForbidden(err):
		return &Refusal{missing.says(c.who(ctx)), err}
	case apierrors.IsUnauthorized(err):
		return &Refusal{"the API server does not know you: log in again, as for kubectl (kubectl auth whoami)", err}
	}
	return &cleaned{err}
}

// says names what is missing, and the command that gives it.
func (m right) says(user string) string {
	you, subject := "you", "--user YOU"
	if user != "" {
		you, subject = "you ("+user+")", "--user "+user
		if account, ok := strings.CutPrefix(user, "system:serviceaccount:"); ok {
			subject = "--serviceaccount " + account
		}
	}
	what := m.resource
	if m.name != "" {
		what += " " + m.name
	}
	kind, called := "role", " (of another release: one that ends so, see kubectl get roles -n "+m.namespace+")"
	if m.role.builtIn() {
		kind, called = "clusterrole", ""
	}
	if m.namespace == "" {
		return fmt.Sprintf("%s may not %s %s in all namespaces; whoever administers the cluster can give that right", you, m.verb, what)
	}
	return fmt.Sprintf("%s may not %s %s in namespace %s. The role %s gives that right, and whoever administers that namespace can give the role%s:\n"+
		"  kubectl create rolebinding NAME -n %s --%s %s %s", you, m.verb, what, m.namespace, m.role, called, m.namespace, kind, m.role, subject)
}

// cleaned is an error whose text, some of it from afar, is safe to print.
type cleaned struct{ error }

func (c *cleaned) Error() string { return text.Clean(c.error.Error(), 1024) }

func (c *cleaned) Unwrap() error { return c.error }
