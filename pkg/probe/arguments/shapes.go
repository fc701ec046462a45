package arguments

import (
	"regexp"
	"slices"
	"strings"
)

// shape is the form that the value behind an option or keyword must have to be kept. What does not look like
// it is dropped: an allow-list of names alone would let a secret through wherever a user confuses the order.
type shape uint8

const (
	word shape = iota
	digits
	// host is an address: negated perhaps, with a mask, as a range, with ports
	// (iptables-extensions(8)). It has dots or colons: a key may be hexadecimal, too.
	host
	// handle is one of tc's: "1:", "ffff:fff1".
	handle
	// quantity is a number with a unit, as tc has them: "10mbit", "25ms".
	quantity
	// sysctl is a key, and its value if that is a number.
	sysctl
	// setType is one of ipset's: "hash:ip,port".
	setType
	// entry is an address in an ipset, with a port perhaps: "10.1.2.3,tcp:80".
	entry
	// columns are those of a table of Open vSwitch: "name,ofport".
	columns

	// secret: the option is kept, its value is not.
	secret
	// remainder: the option is kept, nothing behind it is: it is for another program.
	remainder
	// script: what follows is a script, of which only a part is kept.
	script
)

const ip = `\[?([0-9]{1,3}(\.[0-9]{1,3}){3}|[0-9a-fA-F]{0,4}(:[0-9a-fA-F]{0,4}){2,7})\]?`

// patterns say which values have a shape; secret and those behind it match none.
var patterns = [...]*regexp.Regexp{
	word:     regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,31}$`),
	digits:   regexp.MustCompile(`^[0-9]{1,7}(:[0-9]{1,7})?$`),
	host:     regexp.MustCompile(`^!?` + ip + `(/(` + ip + `|[0-9]{1,3}))?(-` + ip + `)?(:[0-9]{1,5}(-[0-9]{1,5})?)?$`),
	handle:   regexp.MustCompile(`^([0-9a-f]{0,4}:[0-9a-f]{0,4}|root|ingress|egress)$`),
	quantity: regexp.MustCompile(`^[0-9]{1,7}(\.[0-9]{1,3})?([kKmMgG]?(bit|bps|b)?|[mun]?s|%|p)?$`),
	sysctl:   regexp.MustCompile(`^(net|kernel|vm|fs|user)([./][A-Za-z0-9_-]{1,64}){1,8}(=[0-9]{1,10})?$`),
	setType:  regexp.MustCompile(`^(hash|bitmap|list):[a-z]{2,4}(,[a-z]{2,5}){0,2}$`),
	entry:    regexp.MustCompile(`^` + ip + `(/[0-9]{1,3})?(,(tcp|udp|sctp|icmp|icmpv6):[0-9]{1,5})?$`),
	columns:  regexp.MustCompile(`^[a-z_]{1,32}(,[a-z_]{1,32}){0,16}$`),
}

// matches reports whether a value has the shape.
func (s shape) matches(value string) bool {
	return s < secret && patterns[s].MatchString(value)
}

// command is a cmdlet where a script has one: at its beginning, or behind what ends or opens a statement. Its
// verb is one of those that PowerShell approves of (Get-Verb), so that little else looks like one.
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
