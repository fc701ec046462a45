// Package access decides what a user may see of a node: an operator everything, other users the pods of one
// namespace, without facts about others. It is pure; the caller authenticates users.
package access

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/fleet"
)

// Identity is the API server's answer about a token (TokenReviewStatus).
type Identity struct {
	Authenticated bool
	// User is system:serviceaccount:NAMESPACE:NAME.
	User string
	// Audiences are the requested audiences that the token is valid for. A server without audience support
	// returns none; Authenticated is then ignored.
	Audiences []string
	Error     string
}

// Viewer is an authenticated user.
type Viewer struct {
	// Operator sees everything, others see Namespace only.
	Operator  bool
	Namespace string
}

// Refusal is an access error with the missing right.
type Refusal struct {
	// Code is the exit code: fleet.NoToken or fleet.NotAllowed.
	Code int
	Says string
}

func (r *Refusal) Error() string { return r.Says }

// ExitCode returns the exit code of the refused program.
func (r *Refusal) ExitCode() int { return r.Code }

func refused(code int, format string, values ...any) error {
	return &Refusal{Code: code, Says: fmt.Sprintf(format, values...)}
}

// serviceAccount is the prefix of ServiceAccount user names.
const serviceAccount = "system:serviceaccount:"

// Missing returns the refusal without a token.
func Missing() error {
	return refused(fleet.NoToken, "no token on the first line of standard input: kubectl cniscope brings one; without it, "+
		"kubectl create token default -n NAMESPACE --audience %s (the right to create serviceaccounts/token in NAMESPACE)", fleet.Audience)
}

// Of returns the viewer. operator is the ServiceAccount that sees everything, as NAMESPACE:NAME, if any. The error is
// a *Refusal.
func Of(id Identity, operator string) (Viewer, error) {
	switch {
	case !id.Authenticated:
		why := id.Error
		if why == "" {
			why = "the API server does not know it"
		}
		return Viewer{}, refused(fleet.NoToken, "the token does not count: %s. It has to be a ServiceAccount's, for the audience %q, and not expired: "+
			"kubectl create token default -n NAMESPACE --audience %s", why, fleet.Audience, fleet.Audience)
	case !slices.Contains(id.Audiences, fleet.Audience):
		return Viewer{}, refused(fleet.NoToken, "the token is not for the audience %q: kubectl create token default -n NAMESPACE --audience %s", fleet.Audience, fleet.Audience)
	}
	account, ok := strings.CutPrefix(id.User, serviceAccount)
	namespace, name, whole := strings.Cut(account, ":")
	if !ok || !whole || namespace == "" || name == "" || strings.Contains(name, ":") {
		return Viewer{}, refused(fleet.NoToken, "the token is of %q, which is no ServiceAccount: only a ServiceAccount has a namespace to see the pods of", id.User)
	}
	return Viewer{Operator: operator != "" && account == operator, Namespace: namespace}, nil
}

// Node returns a *Refusal if the viewer may not see facts about the whole node. what is fleet.Node, fleet.Doctor or
// fleet.Record.
func (v Viewer) Node(what string) error {
	if v.Operator {
		return nil
	}
	return refused(fleet.NotAllowed, "%s tells of the whole node, and this token is of namespace %s, which may see its own pods: "+
		"it takes the right to create serviceaccounts/token of cniscope's operator (its Role ends in -operator)", what, v.Namespace)
}

// In returns the namespace that a request is limited to: the requested one, or the viewer's only one. Empty means
// all. The error is a *Refusal.
func (v Viewer) In(asked string) (string, error) {
	if v.Operator || asked == v.Namespace {
		return asked, nil
	}
	if asked == "" {
		return v.Namespace, nil
	}
	return "", refused(fleet.NotAllowed, "this token is of namespace %s and may not see the pods of %s: "+
		"it takes the right to create serviceaccounts/token in %s, as the role edit has it there", v.Namespace, asked, asked)
}

// Sees reports whether the viewer may see the pods of a namespace.
func (v Viewer) Sees(namespace string) bool {
	return v.Operator || namespace != "" && namespace == v.Namespace
}

// Calls returns the visible calls.
func (v Viewer) Calls(all []control.Call) []control.Call {
	seen := make([]control.Call, 0, len(all))
	for _, c := range all {
		if v.Sees(c.Namespace) {
			seen = append(seen, c)
		}
	}
	return seen
}
