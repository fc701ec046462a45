package probe

import (
	"net/netip"
	"regexp"
	"strings"

	"github.com/cniscope/cniscope/pkg/text"
)

// Arguments says which arguments of a command leave the probe.
type Arguments string

// Arguments may hold secrets (keys, tokens, whole rules with comments), so what is
// not known to be harmless is dropped.
const (
	// ArgumentsNone drops every argument.
	ArgumentsNone Arguments = "none"
	// ArgumentsKnown keeps what the allow-list of the tool lets through.
	ArgumentsKnown Arguments = "known"
	// ArgumentsAll keeps everything, bounded: for who may see secrets.
	ArgumentsAll Arguments = "all"
)

// argumentsMax is how many arguments of one command are kept.
const argumentsMax = 64

// hidden stands where arguments were dropped.
const hidden = "…"

// shape is the form that the value behind an option or keyword must have to be
// kept. What does not look like it is dropped: an allow-list of names alone would
// let a secret through wherever a user confuses the order.
type shape *regexp.Regexp

const ip = `\[?([0-9]{1,3}(\.[0-9]{1,3}){3}|[0-9a-fA-F]{0,4}(:[0-9a-fA-F]{0,4}){2,7})\]?`

var (
	nothing shape // takes no value
	name    shape = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,31}$`)
	number  shape = regexp.MustCompile(`^[0-9]{1,10}(:[0-9]{1,10})?$`)
	// address: negated perhaps, with a mask, as a range, with ports
	// (iptables-extensions(8)). It has dots or colons: a key may be hexadecimal, too.
	address shape = regexp.MustCompile(`^!?` + ip + `(/(` + ip + `|[0-9]{1,3}))?(-` + ip + `)?(:[0-9]{1,5}(-[0-9]{1,5})?)?$`)
	// secret: the option is kept, its value is not.
	secret shape = regexp.MustCompile(`^$`)
	// rest: the option is kept, nothing behind it is: it is for another program.
	rest shape = regexp.MustCompile(`^$`)
)

// tool is what may be kept of one program's arguments: options and keywords, each
// with the shape of the value behind it. Bare addresses are always kept.
type tool map[string]shape

var iptables = tool{
	"-t": name, "--table": name, "-A": name, "--append": name, "-D": name, "--delete": name,
	"-C": name, "--check": name, "-I": name, "--insert": name, "-R": name, "-N": name, "--new-chain": name,
	"-X": name, "-F": name, "--flush": name, "-L": name, "-S": name, "--list-rules": name, "-P": name, "-E": name,
	"-j": name, "--jump": name, "-g": name, "-m": name, "--match": name, "-p": name, "--protocol": name,
	"-i": name, "--in-interface": name, "-o": name, "--out-interface": name,
	"-s": address, "--source": address, "-d": address, "--destination": address,
	"--dport": number, "--sport": number, "--to-destination": address, "--to-source": address,
	"-w": number, "--wait": number, "-W": number, "-n": nothing, "-v": nothing, "!": nothing,
	"--version": nothing, "--noflush": nothing, "--random-fully": nothing, "--comment": secret,
}

// tools are the programs whose arguments are known. Each allow-list is short on
// purpose: a name that is missing costs a "…", one too many costs a secret.
var tools = map[string]tool{
	"iptables": iptables, "ip6tables": iptables,
	"iptables-save": iptables, "ip6tables-save": iptables,
	"iptables-restore": iptables, "ip6tables-restore": iptables,
	"ip": {
		"-4": nothing, "-6": nothing, "-n": name, "-netns": name, "-o": nothing, "-j": nothing,
		"link": nothing, "addr": nothing, "address": nothing, "route": nothing, "rule": nothing, "neigh": nothing, "netns": nothing,
		"add": nothing, "del": nothing, "delete": nothing, "set": nothing, "show": nothing, "list": nothing,
		"replace": nothing, "flush": nothing, "get": nothing, "exec": rest,
		"up": nothing, "down": nothing, "default": nothing, "peer": nothing, "scope": name,
		"dev": name, "name": name, "type": name, "master": name, "mtu": number, "metric": number,
		"table": name, "via": address, "src": address, "from": address, "to": address,
	},
	"nft": {
		"-f": secret, "-j": nothing, "-a": nothing, "-c": nothing, "--check": nothing, "--version": nothing,
		"add": nothing, "create": nothing, "insert": nothing, "delete": nothing, "destroy": nothing,
		"list": nothing, "flush": nothing, "ruleset": nothing,
		"table": nothing, "chain": nothing, "rule": nothing, "set": nothing, "element": nothing,
		"ip": name, "ip6": name, "inet": name, "bridge": name, "netdev": name,
	},
}

// sanitise returns what may be shown of the arguments of the program called, and
// how many were held back. Runs of dropped arguments become one "…".
func sanitise(called string, args []string, mode Arguments) (kept []string, dropped int) {
	known := tools[called]
	if mode == ArgumentsNone || mode == ArgumentsKnown && known == nil {
		return nil, len(args)
	}
	drop := func() {
		dropped++
		if len(kept) == 0 || kept[len(kept)-1] != hidden {
			kept = append(kept, hidden)
		}
	}
	var value shape
	for i, arg := range args {
		if len(kept) >= argumentsMax {
			dropped += len(args) - i
			break
		}
		if value == rest && mode != ArgumentsAll {
			drop()
			continue
		}
		option, isOption := known[arg]
		switch {
		case mode == ArgumentsAll:
			kept = append(kept, text.Clean(arg, text.Bound))
		case value == secret:
			drop()
			value = nothing
		case isOption:
			kept = append(kept, arg)
			value = option
		case value != nil && (*regexp.Regexp)(value).MatchString(arg), isAddress(arg):
			kept = append(kept, arg)
			value = nothing
		default:
			drop()
			value = nothing
		}
	}
	return kept, dropped
}

func isAddress(s string) bool {
	if strings.Contains(s, "%") { // a zone may be any text
		return false
	}
	if _, err := netip.ParseAddr(s); err == nil {
		return true
	}
	_, err := netip.ParsePrefix(s)
	return err == nil
}
