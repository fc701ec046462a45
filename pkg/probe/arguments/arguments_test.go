package arguments

import (
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/redact"
)

func TestArgumentsThatLeaveTheProbe(t *testing.T) {
	for _, test := range []struct {
		command string
		mode    Mode
		want    string
		dropped int
	}{
		{
			"iptables -t nat -C POSTROUTING -s 10.1.2.3/32 -j CNI-1234 -m comment --comment pod-secret --wait", Known,
			"-t nat -C POSTROUTING -s 10.1.2.3/32 -j CNI-1234 -m comment --comment … --wait", 1,
		},
		{
			"iptables -t nat -A X ! -d 224.0.0.0/4 --dport 80 --set-mark 0x2000", Known,
			"-t nat -A X ! -d 224.0.0.0/4 --dport 80 …", 2,
		},
		{"iptables -w 5 -S", Known, "-w 5 -S", 0},
		{"iptables -j s3cr3t/with/slashes", Known, "-j …", 1},
		{"ip link set dev eth0 mtu 1500 up", Known, "link set dev eth0 mtu 1500 up", 0},
		{"ip xfrm state add auth sha1 0xdeadbeef", Known, "… add …", 5},
		{"ip addr add fd00::1%secret dev eth0", Known, "addr add … dev eth0", 1},
		{"ip netns exec pod1 vpn dev s3cret via 10.1.2.3", Known, "netns exec …", 6},
		{"ip xfrm state add src 10.1.2.3 dst fd00::1 enc aes 0011223344556677", Known, "… add src 10.1.2.3 … fd00::1 …", 6},
		{"ip route add default via deadbeefdeadbeef", Known, "route add default via …", 1},
		{
			"iptables -s deadbeef -d 10.1.2.0/255.255.255.0 --to-destination 10.1.2.3-10.1.2.9:80-90", Known,
			"-s … -d 10.1.2.0/255.255.255.0 --to-destination 10.1.2.3-10.1.2.9:80-90", 1,
		},
		{
			"ip6tables -s !fd00::/64 --to-destination [fd00::2]:8080 -d ::1", Known,
			"-s !fd00::/64 --to-destination [fd00::2]:8080 -d ::1", 0,
		},
		{"ip netns exec pod1 secret", All, "netns exec pod1 secret", 0},
		{"nft -f /tmp/secret", Known, "-f …", 1},
		{"nft add rule ip nat postrouting comment secret", Known, "add rule ip nat …", 3},
		{"curl -H Authorization:secret https://x", Known, "", 3},
		{
			"ovs-vsctl --timeout=10 --may-exist add-port br-int pod-568022 -- set Interface pod-568022 external_ids:token=s3cret", Known,
			"--timeout=10 --may-exist add-port br-int pod-568022 -- set Interface pod-568022 …", 1,
		},
		{"ovs-vsctl --db=ssl:10.1.2.3:6640 --columns=name,ofport list Interface eth1", Known, "… --columns=name,ofport list Interface eth1", 1},
		{"ovs-vsctl set-ssl key.pem cert.pem ca.pem", Known, "…", 4},
		{"ovs-vsctl get Interface pod-1 ofport extra s3cret", Known, "get Interface pod-1 …", 3},
		{"ovs-ofctl -O OpenFlow13 add-flow br-int table=0,priority=200,nw_dst=10.1.2.3", Known, "-O OpenFlow13 add-flow br-int …", 1},
		{"ovs-ofctl dump-flows unix:/var/run/s3cret", Known, "dump-flows …", 1},
		{
			"tc qdisc add dev eth0 handle 1: root htb default 30 r2q s3cret", Known,
			"qdisc add dev eth0 handle 1: root htb default 30 …", 2,
		},
		{"tc class replace dev eth0 parent 1: classid 1:30 htb rate 10mbit burst 15k", Known, "class replace dev eth0 parent 1: classid 1:30 htb rate 10mbit burst 15k", 0},
		{"tc filter add dev eth0 ingress bpf da obj /s3cret.o sec classifier", Known, "filter add dev eth0 ingress bpf da obj … sec classifier", 1},
		{"sysctl -w net.ipv4.ip_forward=1 net/ipv6/conf/eth0.100/accept_dad=0", Known, "-w net.ipv4.ip_forward=1 net/ipv6/conf/eth0.100/accept_dad=0", 0},
		{"sysctl -n net.core.somaxconn", Known, "-n net.core.somaxconn", 0},
		{"sysctl kernel.core_pattern=|/s3cret s3cret=1", Known, "kernel.core_pattern= …", 2},
		{"conntrack -D -p udp --orig-port-dst 53 -d 10.96.0.10 --label s3cret", Known, "-D -p udp --orig-port-dst 53 -d 10.96.0.10 …", 2},
		{"ipset create KUBE-LOOP hash:ip,port,ip family inet hashsize 1024 comment", Known, "create KUBE-LOOP hash:ip,port,ip family inet hashsize 1024 comment", 0},
		{"ipset add KUBE-LOOP 10.1.2.3,tcp:80,10.1.2.3 -exist comment s3cret", Known, "add KUBE-LOOP … -exist comment …", 2},
		{"ipset del pods 10.1.2.3,tcp:80", Known, "del pods 10.1.2.3,tcp:80", 0},
		{"powershell -NoProfile -NonInteractive Get-NetAdapter -Name s3cret", Known, "-NoProfile -NonInteractive Get-NetAdapter …", 2},
		{"pwsh -command Set-NetIPInterface -Version s3cret -e s3cret", Known, "-command Set-NetIPInterface …", 4},
		{"powershell -EncodedCommand R2V0LVNlY3JldA== Get-Date", Known, "-EncodedCommand …", 2},
		{"powershell -File C:\\s3cret.ps1 Get-Date", Known, "-File …", 2},
		{"powershell -Command Hunter-Password", Known, "-Command …", 1},
		{"iptables -t nat --wait=5 --comment=s3cret", Known, "-t nat --wait=5 …", 1},
		{"iptables -t nat", None, "", 2},
		{"curl -H secret", All, "-H secret", 0},
		{"curl a\x1b[31m", All, `a\x1b[31m`, 0},
	} {
		args := strings.Split(test.command, " ")
		kept, dropped := Sanitise(&redact.Call{}, args[0], args[1:], test.mode)
		if got := strings.Join(kept, " "); got != test.want || dropped != test.dropped {
			t.Errorf("%s (%s):\n got %q, %d dropped\nwant %q, %d", test.command, test.mode, got, dropped, test.want, test.dropped)
		}
	}
}

func TestArgumentsAreBounded(t *testing.T) {
	kept, dropped := Sanitise(&redact.Call{}, "any", make([]string, 10_000), All)
	if len(kept) != most || dropped != 10_000-most {
		t.Errorf("%d kept, %d dropped", len(kept), dropped)
	}
}

func TestCmdletsOfAScript(t *testing.T) {
	for script, want := range map[string]string{
		"Get-NetAdapter -Name 'vEthernet (s3cret)' | Set-NetIPInterface -Forwarding Enabled":              "Get-NetAdapter Set-NetIPInterface …",
		"$ErrorActionPreference='Stop'; $a = Get-NetAdapter; if ($a) { New-VMSwitch -Name 'Get-S3cret' }": "Get-NetAdapter New-VMSwitch …",
		"Get-HnsNetwork":                          "Get-HnsNetwork",
		"Get-Date;Get-Date":                       "Get-Date …",
		"Write-Host Get-S3cret Get-Secret":        "Write-Host …",
		"Connect-Thing -Password s3cret":          "…",
		"\"Get-Secret\"":                          "…",
		"Get-" + strings.Repeat("A", 4000):        "…",
		strings.Repeat("Get-It;", 100) + "New-It": "Get-It New-It …",
	} {
		kept, _ := Sanitise(&redact.Call{}, "powershell", []string{"-Command", script}, Known)
		if got, want := strings.Join(kept, " "), "-Command "+want; got != want {
			t.Errorf("%.80s\n got %q\nwant %q", script, got, want)
		}
	}
}
