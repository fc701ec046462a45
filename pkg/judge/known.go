package judge

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

// KnownFailure is a publicly reported failure, and its remedy.
type KnownFailure struct {
	// Who lists the plugins and commands that report it, separated by blanks; empty is any.
	Who string
	// Says matches their message, possibly redacted, or the last refused kernel request and its errno. A named group
	// replaces its name in Remedy: BRIDGE by cni0.
	Says string
	// Look shows the state on the node. If Find is set, a call waits for that event.Found, of Name.
	Remedy, Look string
	Find         event.FoundKind
	Name         string
	// Report may be empty.
	Report, Example string
}

// KnownFailures lists them; the first match counts.
func KnownFailures() []KnownFailure { return slices.Clone(knownFailures) }

type pattern struct {
	KnownFailure
	says *regexp.Regexp
}

var patterns = sync.OnceValue(func() (all []pattern) {
	for _, k := range knownFailures {
		all = append(all, pattern{k, regexp.MustCompile(k.Says)})
	}
	return all
})

// escaped matches a quote inside JSON, quoted a plugin whose error another passes on: type="bridge" failed (add).
var (
	escaped = regexp.MustCompile(`\\+"`)
	quoted  = regexp.MustCompile(`\btype=["']([\w-]+)["']`)
)

// recall returns the known failure in a message, or nil.
func recall(name, words string) *KnownFailure {
	words = escaped.ReplaceAllString(words, `"`)
	names := []string{name}
	for _, plugin := range quoted.FindAllStringSubmatch(words, -1) {
		names = append(names, plugin[1])
	}
	for _, k := range patterns() {
		who := strings.Fields(k.Who)
		said := k.says.FindStringSubmatch(words)
		if said == nil || len(who) > 0 && !slices.ContainsFunc(names, func(n string) bool {
			return slices.Contains(who, n)
		}) {
			continue
		}
		for group, placeholder := range k.says.SubexpNames() {
			if placeholder != "" && harmless.MatchString(said[group]) {
				k.Remedy = strings.ReplaceAll(k.Remedy, placeholder, said[group])
				k.Name = strings.ReplaceAll(k.Name, placeholder, said[group])
			}
		}
		return &k.KnownFailure
	}
	return nil
}

// KnownRemedy returns the remedy of the known failure in a program's words, or nothing.
func KnownRemedy(name, words string) string {
	if k := recall(name, words); k != nil {
		return k.Remedy
	}
	return ""
}

// harmless matches one shell word that is no option, and no placeholder of redaction.
var harmless = regexp.MustCompile(`^\w[\w.:-]{0,252}$`)

// known returns the known failure of the innermost failed run or its last command. A refused request counts only
// without a message.
func known(failed *model.Image) *KnownFailure {
	words := because(failed)
	if r := result(failed); r != nil {
		words = cmp.Or(r.Message, r.Stderr, words)
	}
	if words == "" && failed.Signal != "" {
		words = "killed by " + failed.Signal
	}
	if k := recall(failed.Run.Plugin, words); k != nil {
		return k
	}
	if c := lastCommand(failed); c != nil && c.Failed() {
		return recall(c.Name, because(c))
	}
	return nil
}
