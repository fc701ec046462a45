package decode

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/arguments"
	"github.com/cniscope/cniscope/pkg/probe/image"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/redact"
	"github.com/cniscope/cniscope/pkg/tree"
	"github.com/cniscope/cniscope/test/harness"
)

func answered(t *testing.T, configuration map[string]any, message string) string {
	t.Helper()
	encode := func(v any) []byte {
		return harness.Must(json.Marshal(v))(t)
	}
	s := &streams{known: &redact.Call{}}
	s.known.Await()
	if configuration != nil {
		s.in.Write(encode(configuration))
		if s.configuration("1@1") == nil {
			t.Fatal("no configuration")
		}
	}
	s.out.Write(encode(map[string]any{"cniVersion": "1.0.0", "code": 11, "msg": message, "details": message}))
	return fmt.Sprintf("%+v", s.finish(1, &event.Exit{Process: "1@1"})[0].Body)
}

func TestMessagesLeaveWithoutSecrets(t *testing.T) {
	const secret = "Xq7Canary9ZtSecretValue0123456789abcdef"
	long := "eyJhbGciOiJSUzI1NiJ9." + strings.Repeat("QUJDREVGR0g", 80) + ".c2ln"
	var many []string
	for i := range 300 {
		many = append(many, fmt.Sprintf("entry-%06d", i))
	}
	type object = map[string]any
	for name, test := range map[string]struct {
		configuration   object
		message, secret string
	}{
		"a token longer than a text may be": {object{"token": long}, "apiserver refused token " + long, long[:300]},
		"one where the message is cut":      {object{"token": secret}, strings.Repeat("word ", 98) + secret + " tail", secret[:8]},
		"the last of many strings":          {object{"list": append(many, secret)}, "no " + secret, secret},
		"a number":                          {object{"pin": 4711081512345}, "wrong pin 4711081512345", "4711081512345"},
		"a key":                             {object{"tokens": object{secret: true}}, "no token " + secret, secret},
		"a part of a header":                {object{"header": "Bearer " + secret}, "refused: " + secret, secret},
		"a part of a URL":                   {object{"etcd": "https://root:" + secret + "@10.0.0.1:2379"}, "login root/" + secret + " refused", secret},
		"in quotes":                         {object{"pw": `pa"ss` + secret}, fmt.Sprintf("login %q", `pa"ss`+secret), secret},
		"below a key that looks harmless":   {object{"auth": object{"name": secret, "type": secret, "mode": secret}}, "login " + secret, secret},
		"in what another plugin answered":   {object{"prevResult": object{"dns": object{"search": []string{secret}}}}, "domain " + secret, secret},
	} {
		test.configuration["name"], test.configuration["type"] = "n", "x"
		if got := answered(t, test.configuration, test.message); strings.Contains(got, test.secret) {
			t.Errorf("%s: %s", name, got)
		}
	}
	got := answered(t, nil, "failed to find user admin-x7 with "+secret+" on 10.1.2.3")
	if strings.Contains(got, secret) || strings.Contains(got, "10.1.2.3") || !strings.Contains(got, "failed to find user") {
		t.Errorf("nobody knows what the plugin was told: %s", got)
	}
}

func TestAnInvalidAnswerIsNotQuoted(t *testing.T) {
	for _, answer := range []string{`{"cniVersion": ` + strings.Repeat("7", 20_000) + `}`, `{"code": "Xq7Canary"}`, `Xq7Canary`, `{"code": 1.7777777777e300}`} {
		if r := result("1@1", []byte(answer), &redact.Call{}); r.Invalid == "" || len(r.Invalid) > 64 || strings.Contains(r.Invalid, "777") || strings.Contains(r.Invalid, "Xq7") {
			t.Errorf("%.40s: %.200q", answer, r.Invalid)
		}
	}
}

// A route reads as ip(8) prints it.
func TestARouteOfAResult(t *testing.T) {
	const answer = `{"cniVersion":"1.0.0","ips":[{"address":"10.1.2.3/24"}],"routes":[{"dst":"0.0.0.0/0","gw":"10.1.2.1"},{"dst":"10.9.0.0/16"},{"dst":"::/0","gw":"fd00::1"}]}`
	r := result("1@1", []byte(answer), redact.Ours())
	if got, want := strings.Join(r.Routes, ", "), "0.0.0.0/0 via 10.1.2.1, 10.9.0.0/16, ::/0 via fd00::1"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestSettingsLeaveWithoutSecrets(t *testing.T) {
	for _, test := range []struct{ path, value, key, want string }{
		{"net/ipv4/ip_forward", "1\n", "net/ipv4/ip_forward", "1"},
		{"net/ipv6/conf/veth1a2b3c4d/accept_dad", "0", "net/ipv6/conf/veth1a2b3c4d/accept_dad", "0"},
		{"net/ipv4/tcp_rmem", "4096\t131072\t6291456", "net/ipv4/tcp_rmem", "4096 131072 6291456"},
		{"net/ipv4/tcp_congestion_control", "cubic", "net/ipv4/tcp_congestion_control", "cubic"},
		{"net/ipv6/conf/eth0/stable_secret", "2001:0db8:5ec2:e7c0:ffee:5ec2:e7c0:ffee", "net/ipv6/conf/eth0/stable_secret", "‹text 39›"},
		{"net/ipv4/tcp_fastopen_key", "5ec2e7c0-ffee5ec2-e7c0ffee-5ec2e7c0", "net/ipv4/tcp_fastopen_key", "‹base64 35›"},
		{"kernel/core_pattern", "|/usr/bin/upload --token=Xq7Canary", "kernel/core_pattern", "‹text 34›"},
		{"net/Xq7Canary9ZtSecret/x", "4711081512345", "net/‹base64 18›/x", "‹number 13›"},
	} {
		value := test.value
		parts := strings.Split("proc/sys/"+test.path, "/")
		for i, j := 0, len(parts)-1; i < j; i, j = i+1, j-1 {
			parts[i], parts[j] = parts[j], parts[i]
		}
		w := kernel.InsideCallEvent{Object: uint64(len(value))}
		d := newDecoder()
		s := setting(record{InsideCallEvent: &w, data: []byte(value + strings.Join(parts, "\x00") + "\x00")})
		d.redact("1@1", s)
		if s.Key != test.key || s.Value != test.want {
			t.Errorf("%s = %q leaves as %s = %q, want %q", test.path, test.value, s.Key, s.Value, test.want)
		}
	}
}

func TestWhatAPluginRunsLeavesWithoutSecrets(t *testing.T) {
	const secret = "Xq7Canary9Zt"
	known := &redact.Call{}
	known.Name("eth0")
	known.Configuration([]byte(`{"name":"n","type":"x","token":"` + secret + `","pin":4711081,"user":"plainwords"}`))
	for _, im := range []image.Image{
		{File: "/opt/" + secret + "/run", Args: []string{"run"}},
		{File: "/opt/" + secret, Args: []string{secret}},
		{File: "/usr/bin/fetch", Args: []string{secret}},
		{File: "/usr/bin/plainwords", Args: []string{"plainwords"}},
		{File: "/usr/sbin/ip", Args: []string{"ip", "link", "set", "dev", secret, "up"}},
		{File: "/usr/sbin/ip", Args: []string{"ip", "link", "set", "dev", "plainwords", "mtu", "4711081"}},
		{File: "/usr/sbin/iptables", Args: []string{"iptables", "-t", secret, "-A", "plainwords"}},
		{File: "/usr/bin/ovs-vsctl", Args: []string{"ovs-vsctl", "add-port", "br-int", "plainwords"}},
		{File: "/usr/bin/pwsh", Args: []string{"pwsh", "-c", "Get-Plainwords"}},
		{File: "/usr/sbin/sysctl", Args: []string{"sysctl", "-w", "net." + secret + "=1", "net.core.somaxconn=4711081"}},
	} {
		var e event.Exec
		im.Describe(&e, arguments.Known, known)
		said := strings.ToLower(fmt.Sprintf("%+v", e))
		for _, no := range []string{secret, "plainwords", "4711081"} {
			if strings.Contains(said, strings.ToLower(no)) {
				t.Errorf("%q: %s", im.Args, said)
			}
		}
	}
	var e event.Exec
	image.Image{File: "/usr/sbin/xtables-nft-multi", Args: []string{"iptables", "-t", "nat", "-A", "POSTROUTING", "-o", "veth1a2b3c4d"}}.Describe(&e, arguments.Known, known)
	if e.File != "/usr/sbin/xtables-nft-multi" || e.Name != "iptables" || strings.Join(e.Args, " ") != "-t nat -A POSTROUTING -o veth1a2b3c4d" {
		t.Errorf("what is harmless does not stay: %+v", e)
	}
}

func TestWhatOutlivesAPluginLeavesWithoutSecrets(t *testing.T) {
	d := newDecoder()
	d.options.Environ = func(*event.Exec) []string {
		return []string{"PHRASE=tiny-wolf-den", "CNI_ARGS=K8S_POD_NAME=web-1;SECRET=quick-brown-dog", "CNI_IFNAME=eth0"}
	}
	d.note(event.Event{Time: 1, Body: &event.Exec{Process: "7@1", Parent: "1@1", Root: true, InPath: true, Call: &event.Call{Command: "ADD", ContainerID: "c"}}})
	d.note(event.Event{Time: 2, Body: &event.Fork{Process: "8@2", Parent: "7@1"}})
	s := d.processes["7@1"].run.streams
	s.in.WriteString(`{"name":"n","type":"x","phrase":"correct-horse"}`)
	s.configuration("7@1")
	d.note(event.Event{Time: 3, Body: &event.Exit{Process: "7@1"}})
	for _, secret := range []string{"correct-horse", "tiny-wolf-den", "quick-brown-dog"} {
		var e event.Exec
		image.Image{File: "/opt/" + secret + "/ip", Args: []string{"ip", "link", "show", "dev", secret}}.Describe(&e, arguments.Known, d.known("8@2"))
		w := &event.Wait{Path: "/run/" + secret + ".lock", Holder: &event.Actor{Process: "8@2", Name: secret, Parent: secret}}
		d.redact("9@9", w)
		if said := fmt.Sprintf("%+v %+v", e, *w.Holder); strings.Contains(said, secret) {
			t.Errorf("%s: %s", secret, said)
		}
	}
	a := &event.Accept{Agent: event.Actor{Name: "Xq7Canary9ZtSec"}} // the kernel's 15 bytes
	w := &event.Wait{Holder: &event.Actor{Name: "kworker/u8:2", Parent: "kube-proxy"}}
	d.redact("9@9", a)
	d.redact("9@9", w)
	if strings.Contains(a.Agent.Name, "Xq7Canar") || w.Holder.Name != "kworker/u8:2" || w.Holder.Parent != "kube-proxy" {
		t.Errorf("%+v, %+v", a.Agent, w.Holder)
	}
}

func TestALongInputIsNotRepeated(t *testing.T) {
	d := newDecoder()
	p := d.get("7@1", "1@1")
	p.stdin, p.stdout = 5, 6
	d.note(event.Event{Time: 1, Body: &event.Exec{Process: "7@1", Parent: "1@1", Root: true, InPath: true, Call: &event.Call{Command: "ADD", ContainerID: "c"}}})
	for range 9 {
		d.stream(record{InsideCallEvent: &kernel.InsideCallEvent{Object: 5}, process: "7@1", data: []byte(strings.Repeat("x", 4000))})
	}
	d.stream(record{InsideCallEvent: &kernel.InsideCallEvent{Object: 6, Out: 1}, process: "7@1", data: []byte(`{"cniVersion":"1.0.0","code":7,"msg":"failed to call 10.1.2.3 as hunter2"}`)})
	before := d.note(event.Event{Time: 3, Body: &event.Exit{Process: "7@1"}})
	if len(before) != 1 || before[0].Body.(*event.Result).Message != "failed to call ‹text 8› as ‹text 7›" {
		t.Errorf("%+v", before)
	}
}

func TestLocksStayApart(t *testing.T) {
	d := newDecoder()
	path := func(p string) string {
		w := &event.Wait{Path: p}
		d.redact("1@1", w)
		return w.Path
	}
	a, b := path("/run/"+strings.Repeat("a1", 32)+".lock"), path("/run/"+strings.Repeat("b2", 32)+".lock")
	if a == b || strings.Contains(a, "a1a1") || a != path("/run/"+strings.Repeat("a1", 32)+".lock") || path("/run/xtables.lock") != "/run/xtables.lock" {
		t.Errorf("%q and %q", a, b)
	}
}

func BenchmarkDescribe(b *testing.B) {
	known := &redact.Call{}
	known.Name("eth0")
	configuration, _ := json.Marshal(map[string]any{"name": "n", "type": "x", "text": strings.Repeat("Xq7Canary9Zt secrets ", 100)})
	known.Configuration(configuration)
	im := image.Image{File: "/usr/sbin/xtables-nft-multi", Args: strings.Fields("iptables -t nat -C POSTROUTING -s 10.1.2.3/32 -j CNI-1234 -m comment --comment x -o veth1a2b3c4d --wait")}
	for b.Loop() {
		var e event.Exec
		im.Describe(&e, arguments.Known, known)
	}
}

// A run may keep 256 KiB, 10 MB with its indexes.
func TestTheInputsOfAllRunsAreBounded(t *testing.T) {
	d, most := newDecoder(), 0
	for i := range 400 {
		secret := strings.Repeat(fmt.Sprintf("Xq7Canary%d", i), 1500)
		key, known := event.Process(fmt.Sprintf("%d@1", i)), &redact.Call{}
		d.processes[key] = &process{run: &run{of: &tree.Run{Leader: key}, known: known, streams: &streams{from: 1, known: known}}}
		known.Await()
		r := record{InsideCallEvent: &kernel.InsideCallEvent{Object: 1}, process: key}
		r.data = fmt.Appendf(nil, `{"name":"n","type":"x","args":{"x":"%s"}}`, secret)
		want := 1
		if d.kept() > keptMax {
			want = 2
		}
		bodies := d.stream(r)
		harness.Equal(t, len(bodies), want, "events")
		if want == 2 {
			harness.Equal(t, *bodies[1].(*event.Cut), event.Cut{Process: key, What: "inputs", Count: 1})
		}
		most = max(most, d.kept())
		if said := known.Message("refused " + secret[:40] + " by winter"); !strings.HasPrefix(said, "refused ‹") || !strings.HasSuffix(said, "› by winter") {
			t.Fatal(said)
		}
	}
	if most > 3<<20 {
		t.Errorf("%d bytes are kept", most)
	}
}

// Delegates of Multus are in no file of the node, so the look for their master needs its name; a secret there stays.
func TestTheMasterOfAConfigurationIsNamed(t *testing.T) {
	for master, want := range map[string]string{"eth1": "eth1", "bond0.100": "bond0.100", "Xq7Canary9ZtSecretValue0123456789abcdef": ""} {
		s := &streams{known: &redact.Call{}}
		s.known.Await()
		s.in.Write(harness.Must(json.Marshal(map[string]string{"type": "macvlan", "master": master}))(t))
		if got := s.configuration("1@1").Master; got != want && (want != "" || strings.Contains(got, "Canary")) {
			t.Errorf("%s leaves as %s", master, got)
		}
	}
}

func TestAForgerMakesNoEvidenceOfAPodsSandbox(t *testing.T) {
	const one = "5b2919415cea791dd4ddff000f46e4ada5386e0c3147ae17ac5eebb82e008418"
	const foreign, own = "/run/netns/cni-0badcafe", "/run/netns/cni-786877ce"
	plugin := func(d *Decoder, process event.Process, caller event.Caller, netns string) {
		d.note(event.Event{Body: &event.Exec{
			Process: process, Root: true, InPath: true, Caller: caller, Name: "any",
			Call: &event.Call{Command: "ADD", ContainerID: one, NetNS: netns, IfName: "eth0"},
		}})
		d.attribute(process, &event.Request{Object: event.ObjectLink, Verb: event.VerbAdd, Interface: event.Interface{Name: "veth1a2b3c" + string(process), Kind: "veth"}})
		d.attribute(process, &event.Enter{NetNS: event.Namespace{Key: netns}})
	}
	for _, first := range []bool{true, false} {
		d := newDecoder()
		if first {
			plugin(d, "f", event.CallerHost, foreign)
		}
		plugin(d, "a", event.CallerRuntime, own)
		if !first {
			plugin(d, "f", event.CallerHost, foreign)
		}
		d.note(event.Event{Body: &event.Exit{Process: "f"}})
		d.sandboxes.Forget(1 << 40) // the pod's plugin still runs
		for text, want := range map[string][]string{foreign: nil, own: {one}, one: {one}, "veth1a2b3ca": {one}, "veth1a2b3cf": nil} {
			if got := d.sandboxes.Mentions(nil, nil, text); !slices.Equal(got, want) {
				t.Errorf("the forger first: %v: %s mentions %v, want %v", first, text, got, want)
			}
		}
		if got := d.sandboxes.Mentions([]event.Namespace{{Key: foreign}}, nil); len(got) != 0 {
			t.Errorf("the forger first: %v: its namespace mentions %v", first, got)
		}
	}
}
