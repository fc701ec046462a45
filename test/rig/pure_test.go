//go:build linux

package rig

import (
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

func TestEveryRigHasAddressesOfItsOwn(t *testing.T) {
	for n := range places {
		for m := range n {
			for i := range subnets(n) {
				if subnets(n)[i].Overlaps(subnets(m)[i]) {
					t.Fatalf("rigs %d and %d share %s", n, m, subnets(n)[i])
				}
			}
		}
		last := netOf(n, networksPerRig-1, "", "/d")
		if !subnets(n)[0].Contains(last.Subnet.Addr()) || !subnets(n)[1].Contains(last.Subnet6.Addr()) {
			t.Errorf("the last network of rig %d, %v, is not inside %v", n, last, subnets(n))
		}
		if len(last.Bridge) > 15 {
			t.Errorf("%s is too long for a link", last.Bridge)
		}
	}
}

func TestWhoseRootLiesInTheRig(t *testing.T) {
	const dir = "/run/cniscope-rig/r0"
	container := "631 621 0:52 / / ro,relatime - overlay overlay rw,lowerdir=/l,upperdir=" + dir + "/root/7/fs,workdir=" + dir + "/root/7/work\n"
	for name, c := range map[string]struct {
		mountinfo string
		want      bool
	}{
		"a container of the rig":            {container, true},
		"a container of another rig":        {strings.ReplaceAll(container, "/r0/", "/r01/"), false},
		"the host, which sees its mounts":   {"21 1 254:0 / / rw - ext4 /dev/vda rw\n" + strings.Replace(container, "/ / ", "/ "+dir+"/state/rootfs ", 1), false},
		"a process that has ended meantime": {"", false},
	} {
		harness.Equal(t, rootedBelow([]byte(c.mountinfo), dir), c.want, name)
	}
}

func TestAScriptHandsOnTheResultBefore(t *testing.T) {
	const before = `{"cniVersion":"1.0.0","dns":{},"ips":[{"address":"10.0.0.2/16"}],"routes":[{"dst":"0.0.0.0/0"}]}`
	path := filepath.Join(t.TempDir(), "plugin")
	harness.Check(t, os.WriteFile(path, Script(`[ "$CNI_IFNAME" != bad ] || fail 7 "no such luck"`), 0o755))
	for _, c := range []struct{ name, command, ifname, stdin, want string }{
		{"ADD", "ADD", "eth0", `{"cniVersion":"1.0.0","name":"n","prevResult":` + before + `,"type":"plugin"}`, before},
		{"ADD with a runtime's configuration", "ADD", "eth0", `{"name":"n","prevResult":` + before + `,"runtimeConfig":{"mac":"a"},"type":"plugin"}`, before},
		{"DEL", "DEL", "eth0", `{"name":"n","type":"plugin"}`, ""},
		{"failure", "ADD", "bad", `{"name":"n","prevResult":` + before + `,"type":"plugin"}`, `{"cniVersion":"1.0.0","code":7,"msg":"no such luck"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.Command(path)
			cmd.Env = []string{"CNI_COMMAND=" + c.command, "CNI_IFNAME=" + c.ifname}
			cmd.Stdin = strings.NewReader(c.stdin)
			out, _ := cmd.Output()
			harness.Equal(t, strings.TrimSpace(string(out)), c.want, "it printed")
		})
	}
}

func TestJaegersAnswers(t *testing.T) {
	const span = `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"TRACE","spanId":"SPAN","name":"n","kind":1,"startTimeUnixNano":"1795182760779915796","surprise":1}]}]}]}`
	const trace, id = "0102030405060708090a0b0c0d0e0f10", "0102030405060708"
	in := func(trace, id string) string {
		return `{"result":` + strings.NewReplacer("TRACE", trace, "SPAN", id).Replace(span) + `}`
	}
	hexIDs, base64IDs := in(trace, id), in("AQIDBAUGBwgJCgsMDQ4PEA==", "AQIDBAUGBwg=")
	for _, c := range []struct {
		name, body string
		spans      int
	}{
		{"hex ids", hexIDs, 1},
		{"base64 ids", base64IDs, 1},
		{"chunks", hexIDs + "\n" + base64IDs, 2},
		{"nothing", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			resources, err := decodeTraces([]byte(c.body))
			harness.Check(t, err)
			spans := spansOf(resources)
			if len(spans) != c.spans {
				t.Fatalf("%d spans, not %d", len(spans), c.spans)
			}
			for _, s := range spans {
				if hex.EncodeToString(s.TraceId) != trace || hex.EncodeToString(s.SpanId) != id || s.StartTimeUnixNano != 1795182760779915796 {
					t.Errorf("read %v", s)
				}
			}
		})
	}
	if _, err := decodeTraces([]byte(`{"result":`)); err == nil {
		t.Error("half an answer was taken for a whole")
	}
}
