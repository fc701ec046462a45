package redact

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/harness/spelled"
)

func each(s, format, between string) string {
	var all []string
	for i := range len(s) {
		all = append(all, fmt.Sprintf(format, s[i]))
	}
	return strings.Join(all, between)
}

// minutes spells bytes as durations, of which only those of 0 and 1 read as other numbers, too.
func minutes(s string) string {
	var all []string
	for i := range len(s) {
		all = append(all, fmt.Sprintf("%dm%ds", s[i]/60, s[i]%60))
	}
	return strings.Join(all, " ")
}

// Spelled bytes look like harmless numbers, versions, addresses and letters.
func TestNothingIsSpelledByteByByte(t *testing.T) {
	const secret = "Xq7Canary9ZtSecret"
	for _, message := range []string{
		each(secret, "x%02x", " "), each(secret, "%02xh", ", "), each(secret, "\\u%04x", " "), each(secret, "&#x%x;",
			""), each(secret, "&#%d;", ""),
		each(secret, "\\%o", " "), each(secret, "\\%o", ""), each(secret, "%d", " and "), each(secret, "%c",
			" and "), each(secret, "b%d", " "),
		"88.113.55.67 97.110.97.114 121.57.90.116 83.101.99.114", "88.113.55 67.97.110 97.114.121 57.90.116 83.101.99", "88-113 55-67 97-110 97-114 121-57",
		"10.88.113.55/24 10.67.97.110/24 10.97.114.121/24 10.57.90.116/24",
		"v1.88.9 v1.113.9 v1.55.9 v1.67.9 v1.97.9 v1.110.9 v1.97.9 v1.114.9",
		"0:88 1:113 2:55 3:67 4:97 5:110 6:97 7:114", "5871:3743:616e:6172:795a:7453:6563:7265",
		minutes("Xq7\x00Can\x00\x01ry\x009Zt\x00Sec"),
	} {
		var c Call
		c.Configuration([]byte(`{"name":"n","type":"x","p":"` + secret + `","q":"Xq7\u0000Can\u0000\u0001ry\u00009Zt\u0000Sec"}`))
		out := spelled.WithoutPlaceholders(c.Message("refused " + message + " at once"))
		if !strings.HasPrefix(out, "refused ") || !strings.HasSuffix(out, " at once") ||
			strings.ContainsAny(strings.Trim(out, "refusdatonc "), "0123456789") {
			t.Errorf("%s:\n%q", message, out)
		}
	}
}

// A key makes its value a secret at any depth; a public key name does not make a secret public.
func TestWhatAKeySaysOfItsValue(t *testing.T) {
	for configuration, secret := range map[string]string{
		`{"auth":{"type":"Xq7Canary9ZtSecret"}}`:                  "Xq7Canary9ZtSecret",
		`{"auth":{"version":"correct-horse-battery-staple"}}`:     "correct-horse-battery-staple",
		`{"secrets":{"address":"correct/horse/battery"}}`:         "correct/horse/battery",
		`{"passwords":["/correct/horse/battery"]}`:                "/correct/horse/battery",
		`{"tokenData":{"mode":"correct.horse.battery"}}`:          "correct.horse.battery",
		`{"accessKeyId":"correct_horse_battery"}`:                 "correct_horse_battery",
		`{"token":"correct horse battery staple","token":"x"}`:    "correct horse battery staple",
		`{"password":"10.20.30.40"}`:                              "10.20.30.40",
		`{"password":"1h45m30s"}`:                                 "1h45m30s",
		`{"password":"elephant"}`:                                 "elephant",
		`{"x":"{\"password\":\"correct horse\"}"}`:                "correct horse",
		`{"type":"portmap","prevResult":{"password":"abcdefgh"}}`: "abcdefgh",
		`{"a":[{"type":"x"}],"password":"correct horse"}`:         "correct horse",
		`{"pools":{"gi7ha53.-bug":{}}}`:                           "gi7ha53.-bug",
		`{"pools":{"f_we.h-n_bug":{}}}`:                           "f_we.h-n_bug",
		`{"file":"vlan40941"}`:                                    "vlan40941",
		`{"file":"/tree5/ns2/r64"}`:                               "/tree5/ns2/r64",
		`{"url":"https://root://8k/x7c@10.0.0.1"}`:                "0x2f2f 0x386b 0x2f78 0x3763",
		`{"text":"a7 /x  k  c4"}`:                                 "0x6137 0x202f 0x7820 0x206b",
		`{"file":"/me26:bat59/kubernetes/a1:/b2"}`:                "/me26:bat59",
	} {
		var c Call
		c.Configuration([]byte(configuration))
		if out, is := spelled.Leaked(c.Message("login "+secret+" refused"), secret); is {
			t.Errorf("%s: %q", configuration, out)
		}
	}
	for configuration, stays := range map[string]string{
		`{"master":"zzport"}`: "failed to lookup master \"zzport\": Link not found",
		`{"sysctl":{"net.ipv6.conf.IFNAME.disable_ipv6":"x"}}`: "write /proc/sys/net/ipv6/conf/all/disable_ipv6: invalid argument",
		`{"ipMasqBackend":"nftables"}`:                         "no backend nftables",
		`{"hostPort":"12345"}`:                                 "no port 12345",
		`{"type":"vlan"}`:                                      "no vlan4094 of v1beta1, eth0vlan12 and v1: k8s=down",
		`{"prevResult":{"interfaces":[{"name":"veth1a2b3c4d"},{"name":"eth0","sandbox":"/var/run/netns/cni-x"}]}}`: "no link veth1a2b3c4d",
		`{"server":"https://[fd00:1234:5678::1]:443"}`:                                                             "dial fd00:1234:5678::1",
		`{"ipam":{"type":"dhcp","daemonSocketPath":"/tmp/Xq7Canary9ZtSecret/001/dhcp.sock"}}`:                      "dial unix dhcp.sock",
		`{"assign_ipv4":"true","file":"/root/.kube/config","eth0":{},"k8s_api_root":{}}`:                           "no assign_ipv4 for eth0 or k8s_api_root in /root/.kube/config",
		`{"authFile":"x","ipam":{"type":"static","addresses":[{"address":"10.1.2.3/24"}]}}`:                        "no address 10.1.2.3/24",
	} {
		var c Call
		c.Configuration([]byte(configuration))
		harness.Equal(t, c.Message(stays), stays, configuration)
	}
	var c Call
	c.Configuration([]byte(`{"master":"zorptek-uplink","interface":"lxc12ab34cd56"}`))
	c.Name(strings.Repeat("0123456789abcdef", 4))
	harness.Equal(t, c.Message("no sandbox 0123456789ab at https://root:pw7@10.1.2.3/v1"),
		"no sandbox 0123456789ab at https://‹text 8›@10.1.2.3/v1", "the beginning of an ID, and a host behind a password")
	harness.Equal(t, c.Message(`mark 0x4000 and 0x40000 in C:\xkqzjv\`), `mark 0x4000 and ‹text 7› in ‹text 9›\`,
		"hexadecimal digits, and backslashes in a word and at the end")
	harness.Equal(t, c.Program("zorptek-uplink"), "zorptek-uplink", "a word in a public key")
	harness.Equal(t, c.Program("XKqzjv"), "‹word 6›", "two capitals before small letters")
	harness.Equal(t, c.Argument("lxc12ab34cd56"), true, "an interface in a public key")
}

// Of a sysctl, numbers and listed words stay, unless its name or the configuration makes them a secret.
func TestWhatStaysOfASetting(t *testing.T) {
	var c Call
	c.Configuration([]byte(`{"password":"4711471147"}`))
	c.Name("veth9z8y")
	for _, test := range [][4]string{
		{"net/ipv4/ip_forward", "1", "net/ipv4/ip_forward", "1"},
		{"net/ipv4/conf/veth9z8y/rp_filter", "0", "net/ipv4/conf/veth9z8y/rp_filter", "0"},
		{"net/ipv4/conf/enp3s0f1np1/rp_filter", "-1", "net/ipv4/conf/enp3s0f1np1/rp_filter", "-1"},
		{"net/ipv4/conf/xq7canary9/rp_filter", "0", "net/ipv4/conf/‹text 10›/rp_filter", "0"},
		{"net/ipv4/tcp_mem", "1 4294967295 -2147483648 3", "net/ipv4/tcp_mem", "1 4294967295 -2147483648 3"},
		{"net/ipv4/tcp_mem", "1 2 3 4 5", "net/ipv4/tcp_mem", "‹text 9›"},
		{"net/ipv4/tcp_mem", "42949672950", "net/ipv4/tcp_mem", "‹number 11›"},
		{"net/ipv4/tcp_congestion_control", "cubic", "net/ipv4/tcp_congestion_control", "cubic"},
		{"net/ipv4/tcp_congestion_control", "1 xq7canary9 2", "net/ipv4/tcp_congestion_control", "‹text 14›"},
		{"net/ipv4/tcp_fastopen_key", "1", "net/ipv4/tcp_fastopen_key", "‹number 1›"},
		{"net/ipv4/ip_forward", "4711471147", "net/ipv4/ip_forward", "‹number 10›"},
	} {
		key, value := c.Setting(test[0], test[1])
		harness.Equal(t, key+" = "+value, test[2]+" = "+test[3])
	}
	c.Name("4711471147")
	harness.Equal(t, c.Word("4711471147"), "4711471147", "a secret that is a pod's name")
}

// Of the configuration, what spans hold anyway stays: the network's name, types of plugins, a previous interface.
func TestWhichValuesOfAConfigurationStay(t *testing.T) {
	for _, test := range []struct {
		configuration string
		stays         bool
	}{
		{`{"name":"xq7-canary-9z"}`, true},
		{`{"type":"xq7-canary-9z"}`, true},
		{`{"ipam":{"type":"xq7-canary-9z"}}`, true},
		{`{"delegate":{"type":"xq7-canary-9z"}}`, true},
		{`{"delegates":[{"type":"xq7-canary-9z"}]}`, true},
		{`{"plugins":[{"type":"xq7-canary-9z"}]}`, true},
		{`{"other":{"type":"xq7-canary-9z"}}`, false},
		{`{"ipam":{"deeper":{"type":"xq7-canary-9z"}}}`, false},
		{`{"ipam":{"name":"xq7-canary-9z"}}`, false},
		{`{"prevResult":{"interfaces":[{"name":"xq7-canary-9z"}]}}`, true},
		{`{"prevResult":{"interfaces":[{"name":"xq7-canary-9z-longer"}]}}`, false},
		{`{"token":"xq7-canary-9z"}`, false},
	} {
		var c Call
		c.Configuration([]byte(test.configuration))
		harness.Equal(t, !c.Repeats("xq7-canary-9z"), test.stays, test.configuration)
	}
	var c Call
	harness.Equal(t, c.Configuration([]byte(`{"a":`)), false, "valid")
	if c.Harmless("10.1.2.3") && c.whole() {
		t.Error("a broken configuration counts as a whole one")
	}
	c.Await()
	c.Configuration([]byte(`{}`))
	harness.Equal(t, c.whole(), true, "one of one configurations")
	c.Await()
	harness.Equal(t, c.whole(), false, "one of two configurations")
}

// Values from environment and arguments are redacted, except names of the call.
func TestEnvironmentAndArgumentsAreNotRepeated(t *testing.T) {
	var c Call
	c.Name("web-1", "shop")
	c.Configuration([]byte(`{"name":"n","type":"x"}`))
	c.Environment("PATH=/usr/bin:/opt/cni/bin", "PHRASE=correct horse battery", "DB=Summer2026Winter1",
		"HTTP_PROXY=http://root:h4rd-pass@10.1.2.3:3128", "K8S_POD_NAME=web-1", "PIN=elephants7")
	c.Environment("PWD=/tmp/net/scenarios")
	c.Arguments("--phrase=quick-brown-dog", "-penguins8")
	for message, want := range map[string]string{
		"login correct-horse-battery refused":             "login ‹base64 21› refused",
		"login Summer2026Winter1 refused":                 "login ‹base64 17› refused",
		"login elephants7 refused":                        "login ‹text 10› refused",
		"quick-brown-dog":                                 "‹text 15›",
		"-penguins8":                                      "‹text 10›",
		"pod web-1 of shop in /opt/cni/bin from 10.1.2.3": "pod web-1 of shop in /opt/cni/bin from 10.1.2.3",
	} {
		harness.Equal(t, c.Message(message), want)
	}
	if path := "/run/cniscope-scenario/dhcp.sock"; c.Path(path) != path {
		t.Errorf("where a shell is hides %s as %s", path, c.Path(path))
	}
}

// While the configuration is unknown, up to four short numbers stay, and names that no secret has.
func TestWhatNoConfigurationMakesASecret(t *testing.T) {
	for message, want := range map[string]string{
		"exit status 4 of eth0, cni0 and veth1a2b3c4d":     "exit status 4 of eth0, cni0 and veth1a2b3c4d",
		"write /var/lib/cni/networks/pods/xkqzjv: no file": "write /var/lib/cni/networks/pods/‹word 6›: no file",
		"version GLIBC_2.34 not found":                     "version GLIBC_2.34 not found",
		"pin 4711081512345 of summer2026, abc12":           "pin ‹number 13› of ‹text 10›, ‹text 5›",
		"bytes [88 113 55 67 97] and password=4711":        "bytes [‹text 15›] and password=‹number 4›",
		"1 and 2 and 3 and 4 and 5":                        "1 and 2 and 3 and 4 and ‹number 1›",
	} {
		var c Call
		c.Await()
		harness.Equal(t, c.Message(message), want)
	}
}

// Endless input is bounded: then only listed words stay.
func TestWhatIsToldWithoutAnEnd(t *testing.T) {
	var c Call
	for i := range 2000 {
		c.Configuration(fmt.Appendf(nil, `{"name":"n","type":"x","value":"%01000d"}`, i))
	}
	kept := 0
	for v := range c.values {
		kept += len(v)
	}
	if kept > maxKept {
		t.Errorf("%d bytes are kept", kept)
	}
	harness.Equal(t, c.Message("refused 4711: xkqzjv"), "refused ‹number 4›: ‹word 6›")
	harness.Equal(t, c.Message("open /proc/sys/net/xkqzjv/accept_dad"), "open /proc/sys/net/‹word 6›/accept_dad")
}

// A secret in parts of a path or command is redacted, too.
func TestPartsAreReadOneAfterAnother(t *testing.T) {
	var c Call
	c.Configuration([]byte(`{"name":"n","type":"x","a":"correct horse battery staple","b":"tiny/wolf/den/fox","long":"xkqzjvbnwprt"}`))
	for _, path := range []string{
		"/opt/correct/horse/battery/staple", "/run/tiny/wolf/den/fox",
		"/run/lock/xkqz/jvbn/wprt",
	} {
		if got := c.Path(path); strings.Contains(got, "horse") || strings.Contains(got, "wolf") ||
			strings.Contains(got, "xkqz") {
			t.Errorf("%s leaves as %s", path, got)
		}
	}
	if got := c.Apart([]string{"link", "correct", "horse", "up"}); fmt.Sprint(got) != "[false true true false]" {
		t.Error(got)
	}
	// An operator needs a lock's name.
	for _, path := range []string{
		"/run/cniscope-rig/r0/cni/ipam/host-local-s-lock/lock",
		"/var/run/openvswitch/kube-ovn-daemon.sock", "/run/xtables.lock",
	} {
		harness.Equal(t, c.Path(path), path)
	}
	c.Lost()
	if got := c.Path("/run/xkqzv.sock") + c.Program("xkqz") + c.Word("10.1.2.3"); strings.Contains(got, "xkqz") ||
		strings.Contains(got, "10.1") {
		t.Errorf("nobody knows what it was told: %s", got)
	}
}

// spots agrees with a plain comparison of windows.
func TestSpotsAreWhereTheWindowsAre(t *testing.T) {
	var c Call
	c.Configuration([]byte(`{"name":"n","type":"x","a":"correct horse battery staple","b":"tiny/wolf/den/fox","c":"Xq7Canary9Zt"}`))
	random := rand.New(rand.NewPCG(1, 2))
	pieces := []string{
		"correct", "HORSE", "batt", "ery sta", "ple", "tiny", "wolf", "-den-", "fox", "Xq7Can", "ary9Zt",
		" ", "/", "é", "-", "",
	}
	found := 0
	for range 20_000 {
		var b strings.Builder
		for range random.IntN(10) {
			b.WriteString(pieces[random.IntN(len(pieces))])
		}
		s, want := b.String(), make([]mark, b.Len())
		var plain, folded spelt
		for i := range len(s) {
			plain.add(s[i], i, i+1)
			if ch := s[i]; isLetter(ch) || isDigit(ch) || ch >= 0x80 {
				folded.add(ch, i, i+1)
			}
		}
		c.index.plain.mark(&plain, want)
		c.index.folded.mark(&folded, want)
		got := make([]mark, len(s))
		if c.index.spots(s, got); !slices.Equal(got, want) {
			t.Fatalf("%q: %v, want %v", s, got, want)
		}
		if slices.Contains(want, drop) {
			found++
		}
	}
	if found < 1000 {
		t.Errorf("only %d texts repeated something", found)
	}
}

func TestDurationsAreRounded(t *testing.T) {
	for s, want := range map[string]string{
		"0.12345678": "0.123", "1234567.8": "", "9999.9996": "10000", "10000": "", "10000.5": "", "5000.25": "5000.25", "8191.1232": "8191.123",
		"NaN": "", "-1.5": "", "1e3": "", "1.5.2": "", "1.23456789s": "1.235s", "1.6ms": "2ms", "999.6µs": "1ms", "12µs": "12µs", "-3s": "",
		"1000h": "1000h0m0s", "1001h": "", "1h2m3.45678s": "1h2m3.457s", "a1s": "", "1s": "",
	} {
		got, ok := rounded(s)
		if got != want || ok != (want != "") {
			t.Errorf("%q becomes %q, %v; want %q", s, got, ok, want)
		}
	}
}

// A plugin can spell data from a file in numbers, so their number is bounded.
func TestAMessageHasFewNumbers(t *testing.T) {
	var c Call
	c.Configuration([]byte(`{"name":"n","type":"x"}`))
	for _, format := range []string{"port %d", "%dms", "/proc/%d/ns", "10.0.0.%d", "fe80::%d", "connect %d.5s", "mtu=%d"} {
		var all []string
		for n := range 60 {
			all = append(all, fmt.Sprintf(format, n+100), "failed")
		}
		out := c.Message(strings.Join(all, " "))
		if stay := strings.FieldsFunc(spelled.WithoutPlaceholders(out),
			func(r rune) bool { return r < '0' || r > '9' }); len(stay) > 6*maxNumbers {
			t.Errorf("%s: %q", format, out)
		}
		// A repeated number adds nothing.
		if again := strings.Repeat(fmt.Sprintf(format, 100)+" failed ", 60); c.Message(again) != again {
			t.Errorf("%q", c.Message(again))
		}
	}
}
