package judge

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// KnownFailure is a failure that plugins have reported in public, and the remedy for it.
type KnownFailure struct {
	// Who lists the plugins and commands that say it, separated by blanks; any may if it is empty.
	Who string
	// Says matches their message, whole or redacted, or the last request that the kernel refused and its errno.
	// What a named group matches replaces its name in Remedy: BRIDGE by cni0.
	Says string
	// Remedy is what to do, Look a command that shows the state on the node, Report a public report or empty.
	Remedy, Look, Report string
	// Example is a message that one of Who wrote.
	Example string
}

// KnownFailures lists them; the first that matches holds.
func KnownFailures() []KnownFailure {
	return slices.Concat(ofInterfacePlugins(), ofAddressPlugins(), ofChainedPlugins(), ofCalls(), ofClusterNetworks(), ofDelegatorsAndClouds())
}

type pattern struct {
	KnownFailure
	says *regexp.Regexp
}

// patterns compiles KnownFailures once, when a call has failed.
var patterns = sync.OnceValue(func() (all []pattern) {
	for _, k := range KnownFailures() {
		all = append(all, pattern{k, regexp.MustCompile(k.Says)})
	}
	return all
})

// recall returns the known failure that a plugin or command reports with these words; nil if it is none. A plugin may
// quote another as libcni does: plugin type="bridge" failed (add).
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

// harmless matches a name that a shell takes as one word, and no program as an option. It matches no placeholder of redaction.
var harmless = regexp.MustCompile(`^\w[\w.:-]*$`)

// known returns the known failure that the innermost failed run, or the command that made it fail, reports; nil if
// there is none. A refused request counts only where the run wrote no message, which would name the failure.
func (e *evidence) known() *KnownFailure {
	words := because(e.Failed)
	if r := result(e.Failed); r != nil && r.Message != "" {
		words = r.Message
	}
	if k := recall(e.Failed.Run.Plugin, words); k != nil {
		return k
	}
	if c := lastCommand(e.Failed); c != nil && c.Failed() {
		return recall(c.Name, because(c))
	}
	return nil
}
