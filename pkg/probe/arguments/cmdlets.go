package arguments

import (
	"regexp"
	"slices"
	"strings"
)

// command is a cmdlet where a script has one: at its beginning, or behind what ends or
// opens a statement. Its verb is one of those that PowerShell approves of (Get-Verb), so
// that little else looks like one.
var command = regexp.MustCompile(`(?:^|[|;{(=&\n])\s*((?:Add|Clear|Close|Compare|Convert|ConvertFrom|ConvertTo|Copy|Disable|Enable|Export|Find|ForEach|Format|Get|Import|Install|` +
	`Invoke|Measure|Move|New|Open|Out|Register|Remove|Rename|Reset|Resolve|Restart|Resume|Select|Set|Sort|Start|Stop|Suspend|Test|Uninstall|Unregister|Update|Wait|Where|Write)` +
	`-[A-Z][A-Za-z]{1,39})(?:$|[\s|;)}])`)

// cmdletsMax is how many cmdlets of one script are named.
const cmdletsMax = 8

// cmdlets names those of a script, each once: all else in it may be anything.
func cmdlets(script string) (found []string) {
	for len(found) < cmdletsMax {
		at := command.FindStringSubmatchIndex(script)
		if at == nil {
			break
		}
		if name := script[at[2]:at[3]]; !slices.Contains(found, name) {
			found = append(found, name)
		}
		script = script[at[3]:] // what ends one may open another
		if strings.HasPrefix(script, " ") {
			script = "\x00" + script // no beginning
		}
	}
	return found
}

// sysctlKey keeps a key whose value may be anything.
func sysctlKey(arg string) []string {
	if key, _, ok := strings.Cut(arg, "="); ok && sysctl.matches(key) {
		return []string{key + "="}
	}
	return nil
}
