package probe

// tools are the programs whose arguments are known. Each allow-list is short on
// purpose: a name that is missing costs a "…", one too many costs a secret.
var tools = map[string]tool{
	"iptables": iptables, "ip6tables": iptables, "ebtables": iptables,
	"iptables-nft": iptables, "ip6tables-nft": iptables, "iptables-legacy": iptables, "ip6tables-legacy": iptables,
	"iptables-save": iptables, "ip6tables-save": iptables,
	"iptables-restore": iptables, "ip6tables-restore": iptables,
	"ip": ipRoute, "tc": tc, "nft": nft, "ipset": ipset, "conntrack": conntrack,
	"sysctl":    {words: plain("-w -n -e -q -a -p --write --values --ignore --quiet --all"), bare: []shape{sysctl}, part: sysctlKey},
	"ovs-vsctl": vsctl, "ovs-ofctl": ofctl,
	"powershell": powershell, "pwsh": powershell,
}

var iptables = tool{words: map[string][]shape{
	"-t": name, "--table": name, "-A": name, "--append": name, "-D": name, "--delete": name,
	"-C": name, "--check": name, "-I": name, "--insert": name, "-R": name, "-N": name, "--new-chain": name,
	"-X": name, "-F": name, "--flush": name, "-L": name, "-S": name, "--list-rules": name, "-P": name, "-E": name,
	"-j": name, "--jump": name, "-g": name, "-m": name, "--match": name, "-p": name, "--protocol": name,
	"-i": name, "--in-interface": name, "-o": name, "--out-interface": name,
	"-s": address, "--source": address, "-d": address, "--destination": address,
	"--dport": number, "--sport": number, "--to-destination": address, "--to-source": address,
	"-w": number, "--wait": number, "-W": number, "-n": nothing, "-v": nothing, "!": nothing,
	"--version": nothing, "--noflush": nothing, "--random-fully": nothing, "--comment": hide,
}}

var ipRoute = tool{words: merged(
	plain("-4 -6 -o -j link addr address route rule neigh netns add del delete set show list replace flush get up down default peer"),
	map[string][]shape{
		"-n": name, "-netns": name, "exec": end, "scope": name,
		"dev": name, "name": name, "type": name, "master": name, "mtu": number, "metric": number,
		"table": name, "via": address, "src": address, "from": address, "to": address,
	},
)}

var nft = tool{words: merged(
	plain("-j -a -c --check --version add create insert delete destroy list flush ruleset table chain rule set element"),
	map[string][]shape{"-f": hide, "ip": name, "ip6": name, "inet": name, "bridge": name, "netdev": name},
)}

var tc = tool{words: merged(
	plain("-s -d -j -p qdisc class filter chain action actions add del delete replace change show list ls get",
		"root ingress egress clsact htb tbf fq fq_codel pfifo pfifo_fast noqueue mq netem prio u32 flower matchall bpf basic",
		"direct-action da skip_sw skip_hw mirred redirect mirror police drop pass pipe continue conform-exceed"),
	map[string][]shape{
		"-n": name, "-netns": name, "dev": name, "protocol": name,
		"parent": {handle}, "handle": {handle}, "classid": {handle}, "flowid": {handle}, "default": number,
		"pref": number, "rate": {quantity}, "ceil": {quantity}, "burst": {quantity}, "latency": {quantity},
		"limit": {quantity}, "delay": {quantity}, "loss": {quantity}, "mtu": number, "quantum": number,
		"obj": hide, "object-file": hide, "object-pinned": hide, "section": name, "sec": name, "cookie": hide,
	},
)}

var ipset = tool{words: merged(
	plain("-exist -! -q -quiet -t -terse -s -sorted save version netmask"),
	map[string][]shape{
		"create": {word, setType}, "-N": {word, setType}, "add": {word, entry}, "-A": {word, entry},
		"del": {word, entry}, "-D": {word, entry}, "test": {word, entry}, "-T": {word, entry},
		"destroy": name, "-X": name, "list": name, "-L": name, "flush": name, "-F": name,
		"swap": names, "rename": names, "restore": nothing, "-R": nothing, "-o": name, "-output": name, "-n": nothing, "-name": nothing,
		"family": name, "hashsize": number, "maxelem": number, "timeout": number, "range": address, "comment": hide,
	},
)}

var conntrack = tool{words: merged(
	plain("-L --dump -D --delete -F --flush -C --count -S --stats -E --event -G --get -I --create -U --update -n --src-nat -g --dst-nat conntrack expect dying unconfirmed"),
	map[string][]shape{
		"-p": name, "--proto": name, "-f": name, "--family": name, "-o": name, "--output": name, "--state": name,
		"-s": address, "--src": address, "--orig-src": address, "-d": address, "--dst": address, "--orig-dst": address,
		"-r": address, "--reply-src": address, "-q": address, "--reply-dst": address,
		"--sport": number, "--orig-port-src": number, "--dport": number, "--orig-port-dst": number,
		"--reply-port-src": number, "--reply-port-dst": number, "-w": number, "--zone": number, "-t": number, "--timeout": number,
	},
)}

// Of the records of ovs-vsctl(8) only tables, names and columns are kept: what is in a
// column may be anything.
var vsctl = tool{words: merged(
	plain("-- --may-exist --if-exists --no-wait --no-heading --bare --oneline --dry-run show list-br emer-reset init"),
	map[string][]shape{
		"-t": number, "--timeout": number, "-f": name, "--format": name, "--columns": {columns}, "--id": hide, "--db": hide,
		"add-br": names, "del-br": name, "br-exists": name, "add-port": names, "del-port": names, "add-bond": names,
		"list-ports": name, "list-ifaces": name, "port-to-br": name, "iface-to-br": name, "br-to-vlan": name,
		"list": names, "find": name, "get": names, "set": names, "add": {word, word, word}, "remove": {word, word, word},
		"clear": {word, word, word}, "create": name, "destroy": names, "wait-until": names,
		"get-controller": name, "del-controller": name, "set-controller": name, "get-fail-mode": name, "set-fail-mode": names,
	},
)}

var ofctl = tool{words: merged(
	plain("--strict --bundle --no-stats --no-names --names --sort --timestamp"),
	map[string][]shape{
		"-O": name, "--protocols": name, "-t": number, "--timeout": number, "-F": name, "--flow-format": name,
		"show": name, "dump-flows": name, "dump-aggregate": name, "dump-tables": name, "dump-ports": name, "dump-ports-desc": name,
		"dump-groups": name, "dump-meters": name, "dump-tlv-map": name, "add-flow": name, "add-flows": name, "mod-flows": name, "del-flows": name,
		"replace-flows": name, "diff-flows": names, "add-group": name, "mod-group": name, "del-groups": name, "insert-buckets": name,
		"add-meter": name, "mod-meter": name, "del-meters": name, "add-tlv-map": name, "del-tlv-map": name, "mod-port": {word, word, word},
		"packet-out": name, "bundle": name, "monitor": name, "get-frags": name, "set-frags": names,
	},
)}

var powershell = tool{fold: true, part: cmdlets, words: merged(
	plain("-noprofile -nop -noninteractive -noni -nologo -noexit -sta -mta"),
	map[string][]shape{
		"-command": {script}, "-c": {script},
		"-executionpolicy": name, "-ex": name, "-ep": name, "-outputformat": name, "-inputformat": name, "-windowstyle": name,
		"-encodedcommand": end, "-enc": end, "-e": end, "-ec": end, "-file": end, "-f": end,
		"-custompipename": hide, "-configurationname": hide,
	},
)}
