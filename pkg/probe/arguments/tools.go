package arguments

// tools are few on purpose: a missing name costs a "…", a wrong one a secret.
var tools = map[string]tool{
	"iptables": iptables, "ip6tables": iptables, "ebtables": iptables,
	"iptables-nft": iptables, "ip6tables-nft": iptables, "iptables-legacy": iptables, "ip6tables-legacy": iptables,
	"iptables-save": iptables, "ip6tables-save": iptables,
	"iptables-restore": iptables, "ip6tables-restore": iptables,
	"ip": ipRoute, "tc": tc, "nft": nft, "ipset": ipset, "conntrack": conntrack,
	"sysctl":    {words: takes("-w -n -e -q -a -p --write --values --ignore --quiet --all"), bare: []shape{sysctl}, part: sysctlKey},
	"ovs-vsctl": vsctl, "ovs-ofctl": ofctl,
	"powershell": powershell, "pwsh": powershell,
}

var iptables = tool{words: options(
	takes("-t --table -A --append -D --delete -C --check -I --insert -R -N --new-chain -X -F --flush -L -S --list-rules -P "+
		"-E -j --jump -g -m --match -p --protocol -i --in-interface -o --out-interface", word),
	takes("-s --source -d --destination --to-destination --to-source", host),
	takes("--dport --sport -w --wait -W", digits),
	takes("-n -v ! --version --noflush --random-fully"),
	takes("--comment", secret),
)}

var ipRoute = tool{words: options(
	takes("-4 -6 -o -j link addr address route rule neigh netns add del delete set show list replace flush get up down default peer"),
	takes("-n -netns scope dev name type master table", word),
	takes("exec", remainder),
	takes("mtu metric", digits),
	takes("via src from to", host),
)}

var nft = tool{words: options(
	takes("-j -a -c --check --version add create insert delete destroy list flush ruleset table chain rule set element"),
	takes("-f", secret),
	takes("ip ip6 inet bridge netdev", word),
)}

var tc = tool{words: options(
	takes("-s -d -j -p qdisc class filter chain action actions add del delete replace change show list ls get "+
		"root ingress egress clsact htb tbf fq fq_codel pfifo pfifo_fast noqueue mq netem prio u32 flower matchall bpf basic "+
		"direct-action da skip_sw skip_hw mirred redirect mirror police drop pass pipe continue conform-exceed"),
	takes("-n -netns dev protocol section sec", word),
	takes("parent handle classid flowid", handle),
	takes("default pref mtu quantum", digits),
	takes("rate ceil burst latency limit delay loss", quantity),
	takes("obj object-file object-pinned cookie", secret),
)}

var ipset = tool{words: options(
	takes("-exist -! -q -quiet -t -terse -s -sorted save version netmask"),
	takes("create -N", word, setType),
	takes("add -A del -D test -T", word, entry),
	takes("destroy -X list -L flush -F -o -output family", word),
	takes("swap rename", word, word),
	takes("restore -R -n -name"),
	takes("hashsize maxelem timeout", digits),
	takes("range", host),
	takes("comment", secret),
)}

var conntrack = tool{words: options(
	takes("-L --dump -D --delete -F --flush -C --count -S --stats -E --event -G --get -I --create -U --update -n --src-nat -g --dst-nat conntrack expect dying unconfirmed"),
	takes("-p --proto -f --family -o --output --state", word),
	takes("-s --src --orig-src -d --dst --orig-dst -r --reply-src -q --reply-dst", host),
	takes("--sport --orig-port-src --dport --orig-port-dst --reply-port-src --reply-port-dst -w --zone -t --timeout", digits),
)}

// Values of ovs-vsctl(8)'s records may be anything.
var vsctl = tool{words: options(
	takes("-- --may-exist --if-exists --no-wait --no-heading --bare --oneline --dry-run show list-br emer-reset init"),
	takes("-t --timeout", digits),
	takes("-f --format del-br br-exists list-ports list-ifaces port-to-br iface-to-br br-to-vlan find create "+
		"get-controller del-controller set-controller get-fail-mode", word),
	takes("--columns", columns),
	takes("--id --db", secret),
	takes("add-br add-port del-port add-bond list get set destroy wait-until set-fail-mode", word, word),
	takes("add remove clear", word, word, word),
)}

var ofctl = tool{words: options(
	takes("--strict --bundle --no-stats --no-names --names --sort --timestamp"),
	takes("-O --protocols -F --flow-format show dump-flows dump-aggregate dump-tables dump-ports dump-ports-desc "+
		"dump-groups dump-meters dump-tlv-map add-flow add-flows mod-flows del-flows replace-flows add-group mod-group "+
		"del-groups insert-buckets add-meter mod-meter del-meters add-tlv-map del-tlv-map packet-out bundle monitor "+
		"get-frags", word),
	takes("-t --timeout", digits),
	takes("diff-flows set-frags", word, word),
	takes("mod-port", word, word, word),
)}

var powershell = tool{fold: true, part: cmdlets, words: options(
	takes("-noprofile -nop -noninteractive -noni -nologo -noexit -sta -mta"),
	takes("-command -c", script),
	takes("-executionpolicy -ex -ep -outputformat -inputformat -windowstyle", word),
	takes("-encodedcommand -enc -e -ec -file -f", remainder),
	takes("-custompipename -configurationname", secret),
)}
