package arguments

import (
	"regexp"
	"slices"
	"strings"
)

// shape is the form of a value. Without it a secret would pass if a user confuses arguments.
type shape uint8

const (
	word shape = iota
	digits
	// host is an address, optionally negated, with mask, range, or ports (iptables-extensions(8)). Keys may be
	// hexadecimal, so dots or colons are required.
	host
	// tc: "1:", "ffff:fff1"
	handle
	// tc: "10mbit", "25ms"
	quantity
	sysctl
	// ipset: "hash:ip,port"
	setType
	// ipset: "10.1.2.3,tcp:80"
	entry
	// Open vSwitch: "name,ofport"
	columns

	// always dropped
	secret
	// the rest is for another program
	remainder
	// the rest is a script
	script
)

const ip = `\[?([0-9]{1,3}(\.[0-9]{1,3}){3}|[0-9a-fA-F]{0,4}(:[0-9a-fA-F]{0,4}){2,7})\]?`

// secret and later shapes match nothing.
var patterns = [...]*regexp.Regexp{
	digits:   regexp.MustCompile(`^[0-9]{1,7}(:[0-9]{1,7})?$`),
	host:     regexp.MustCompile(`^!?` + ip + `(/(` + ip + `|[0-9]{1,3}))?(-` + ip + `)?(:[0-9]{1,5}(-[0-9]{1,5})?)?$`),
	handle:   regexp.MustCompile(`^([0-9a-f]{0,4}:[0-9a-f]{0,4}|root|ingress|egress)$`),
	quantity: regexp.MustCompile(`^[0-9]{1,7}(\.[0-9]{1,3})?([kKmMgG]?(bit|bps|b)?|[mun]?s|%|p)?$`),
	sysctl:   regexp.MustCompile(`^(net|kernel|vm|fs|user)([./][A-Za-z0-9_-]{1,64}){1,8}(=[0-9]{1,10})?$`),
	setType:  regexp.MustCompile(`^(hash|bitmap|list):[a-z]{2,4}(,[a-z]{2,5}){0,2}$`),
	entry:    regexp.MustCompile(`^` + ip + `(/[0-9]{1,3})?(,(tcp|udp|sctp|icmp|icmpv6):[0-9]{1,5})?$`),
	columns:  regexp.MustCompile(`^[a-z_]{1,32}(,[a-z_]{1,32}){0,16}$`),
}

func (s shape) matches(value string) bool {
	if s == word {
		return isWord(value)
	}
	return s < secret && patterns[s].MatchString(value)
}

// isWord matches `^[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,31}$`.
func isWord(s string) bool {
	for i := range len(s) {
		ch := s[i]
		first := ch == '_' || ch >= '0' && ch <= '9' || ch|0x20 >= 'a' && ch|0x20 <= 'z'
		if !first && (i == 0 || strings.IndexByte(".:@-", ch) < 0) {
			return false
		}
	}
	return s != "" && len(s) <= 32
}

// command matches a statement's cmdlet, with PowerShell's approved verbs (Get-Verb).
var command = regexp.MustCompile(`(?:^|[|;{(=&\n])\s*((?:Add|Clear|Close|Compare|Convert|ConvertFrom|ConvertTo|Copy|Disable|Enable|Export|Find|ForEach|Format|Get|Import|Install|` +
	`Invoke|Measure|Move|New|Open|Out|Register|Remove|Rename|Reset|Resolve|Restart|Resume|Select|Set|Sort|Start|Stop|Suspend|Test|Uninstall|Unregister|Update|Wait|Where|Write)` +
	`-[A-Z][A-Za-z]{1,39})(?:$|[\s|;)}])`)

const cmdletsMax = 8

// cmdlets returns a script's distinct cmdlets. Anything else may be secret.
func cmdlets(script string) (found []string) {
	for len(found) < cmdletsMax {
		at := command.FindStringSubmatchIndex(script)
		if at == nil {
			break
		}
		if name := script[at[2]:at[3]]; !slices.Contains(found, name) {
			found = append(found, name)
		}
		script = script[at[3]:]
		if strings.HasPrefix(script, " ") {
			script = "\x00" + script // not a beginning
		}
	}
	return found
}

func sysctlKey(arg string) []string {
	if key, _, ok := strings.Cut(arg, "="); ok && sysctl.matches(key) {
		return []string{key + "="}
	}
	return nil
}
