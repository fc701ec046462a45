package probe

import "regexp"

const ip = `\[?([0-9]{1,3}(\.[0-9]{1,3}){3}|[0-9a-fA-F]{0,4}(:[0-9a-fA-F]{0,4}){2,7})\]?`

// The shapes of values.
var (
	word   = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,31}$`)
	digits = regexp.MustCompile(`^[0-9]{1,7}(:[0-9]{1,7})?$`)
	// host: negated perhaps, with a mask, as a range, with ports
	// (iptables-extensions(8)). It has dots or colons: a key may be hexadecimal, too.
	host = regexp.MustCompile(`^!?` + ip + `(/(` + ip + `|[0-9]{1,3}))?(-` + ip + `)?(:[0-9]{1,5}(-[0-9]{1,5})?)?$`)
	// secret: the option is kept, its value is not.
	secret = regexp.MustCompile(`^$`)
	// rest: the option is kept, nothing behind it is: it is for another program.
	rest = regexp.MustCompile(`^$`)
	// script: what follows is a script, of which only a part is kept.
	script = regexp.MustCompile(`^$`)
	// handle is one of tc's: "1:", "ffff:fff1".
	handle = regexp.MustCompile(`^([0-9a-f]{0,4}:[0-9a-f]{0,4}|root|ingress|egress)$`)
	// quantity is a number with a unit, as tc has them: "10mbit", "25ms".
	quantity = regexp.MustCompile(`^[0-9]{1,7}(\.[0-9]{1,3})?([kKmMgG]?(bit|bps|b)?|[mun]?s|%|p)?$`)
	// sysctl is a key, and its value if that is a number.
	sysctl = regexp.MustCompile(`^(net|kernel|vm|fs|user)([./][A-Za-z0-9_-]{1,64}){1,8}(=[0-9]{1,10})?$`)
	// setType is one of ipset's: "hash:ip,port".
	setType = regexp.MustCompile(`^(hash|bitmap|list):[a-z]{2,4}(,[a-z]{2,5}){0,2}$`)
	// entry is an address in an ipset, with a port perhaps: "10.1.2.3,tcp:80".
	entry = regexp.MustCompile(`^` + ip + `(/[0-9]{1,3})?(,(tcp|udp|sctp|icmp|icmpv6):[0-9]{1,5})?$`)
)

// What may stand behind an option or keyword.
var (
	nothing []shape
	name    = []shape{word}
	names   = []shape{word, word}
	number  = []shape{digits}
	address = []shape{host}
	hide    = []shape{secret}
	end     = []shape{rest}
)
