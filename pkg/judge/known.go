package judge

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// KnownFailure is a publicly reported failure, and its remedy.
type KnownFailure struct {
	// Who lists the plugins and commands that report it, separated by blanks; empty is any.
	Who string
	// Says matches their message, possibly redacted, or the last refused kernel request and its errno. A named group
	// replaces its name in Remedy: BRIDGE by cni0.
	Says string
	// Look shows the state on the node; Report may be empty.
	Remedy, Look, Report string
	Example              string
}

// KnownFailures lists them; the first match counts.
func KnownFailures() []KnownFailure {
	return slices.Concat(ofInterfacePlugins(), ofAddressPlugins(), ofChainedPlugins(), ofCalls(), ofClusterNetworks(), ofDelegatorsAndClouds())
}

type pattern struct {
	KnownFailure
	says *regexp.Regexp
}

var patterns = sync.OnceValue(func() (all []pattern) {
	for _, k := range KnownFailures() {
		all = append(all, pattern{k, regexp.MustCompile(k.Says)})
	}
	return all
})

// recall returns the known failure in a message, or nil. A plugin may quote another as libcni does: plugin
// type="bridge" failed (add).
func recall(name, words string) *KnownFailure {
	for _, k := range patterns() {
		who := strings.Fields(k.Who)
		said := k.says.FindStringSubmatch(words)
		if said == nil || len(who) > 0 && !slices.ContainsFunc(who, func(w string) bool {
			return w == name || strings.Contains(words, `type="`+w+`"`)
		}) {
			continue
		}
		for group, placeholder := range k.says.SubexpNames() {
			if placeholder != "" && harmless.MatchString(said[group]) {
				k.Remedy = strings.ReplaceAll(k.Remedy, placeholder, said[group])
			}
		}
		return &k.KnownFailure
	}
	return nil
}

// harmless matches one shell word that is no option, and no placeholder of redaction.
var harmless = regexp.MustCompile(`^\w[\w.:-]*$`)

// known returns the known failure of the innermost failed run or of its last command, or nil. A refused request
// counts only if the run wrote no message.
func (e *evidence) known() *KnownFailure {
	words := because(e.Failed)
	if r := result(e.Failed); r != nil {
		words = cmp.Or(r.Message, r.Stderr, words)
	}
	if k := recall(e.Failed.Run.Plugin, words); k != nil {
		return k
	}
	if c := lastCommand(e.Failed); c != nil && c.Failed() {
		return recall(c.Name, because(c))
	}
	return nil
}
