//go:build linux

package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

const (
	canary    = "Xq7Canary9ZtSecret"
	canaryKey = "5ec2e7c0ffee5ec2e7c0ffee5ec2e7c0"
	unseen    = "Zq8vUnse3n4TkPl4ce"
)

var long = strings.Repeat("Ln9wLongC4nary", 40)

// A secret in arguments, environment, CNI configuration, error text, annotations or options is in no output.
func TestSecretsStayWhereTheyAre(t *testing.T) {
	commands := t.TempDir()
	fetch := filepath.Join(commands, "fetch")
	harness.Check(t, os.WriteFile(fetch, []byte("#!/bin/sh\n:\n"), 0o755))
	s := set(t, true, rig.Options{
		Networks: []rig.Network{{Plugins: []rig.Plugin{
			rig.Bridge(rig.Conf{"password": canary, "args": rig.Conf{"cni": rig.Conf{"token": canary}}}),
			func(n rig.Net) rig.Conf {
				ipam := rig.HostLocal(n.DataDir, n.Subnet)
				ipam["apiKey"], ipam["key"] = canary, canaryKey
				return rig.Conf{
					"type": "leaky", "credentials": canary, "ipam": ipam, "jwt": long, "pin": 47110815123456,
					"name of a user": rig.Conf{"name": "admin " + canary},
				}
			},
		}}},
		Plugins: map[string][]byte{"leaky": rig.Script(strings.NewReplacer(
			"{fetch}", fetch, "{canary}", canary, "{key}", canaryKey,
			"{base64}", base64.StdEncoding.EncodeToString([]byte(canary)), "{hex}", hex.EncodeToString([]byte(canary)),
			"{pair}", base64.StdEncoding.EncodeToString([]byte("admin:"+canary)), "{upper}", strings.ToUpper(canary),
			"{half}", canary[:len(canary)/2], "{percent}", "%"+strings.ToUpper(fmt.Sprintf("% x", canary)), "{long}", long, "{unseen}", unseen,
			"{bytes}", fmt.Sprintf("%d", []byte(canary)),
		).Replace(`
export CNI_TOKEN={canary} TOKEN={canary} UNSEEN={unseen} CNI_ARGS="$CNI_ARGS;K8S_SECRET={canary}"
# Nothing here needs to succeed.
{
	{fetch} -s -H "Authorization: Bearer {canary}" -d {base64} https://user:{canary}@127.0.0.1/{hex} dev {canary}
	iptables -w -t nat -C POSTROUTING -m comment --comment {canary} -j RETURN
	iptables -w -t nat -C POSTROUTING --comment={canary} --log-prefix {canary} -s {key} --to-source {key}
	ip xfrm state add src 127.0.0.1 dst {key} proto esp spi 0x1000 mode tunnel auth 'hmac(sha256)' 0x{key} enc 'cbc(aes)' {key}
	ip macsec add macsec0 tx sa 0 pn 1 on key 00 {key}
	ip netns exec none {fetch} dev {canary} type {canary} via {key}
	nft add rule inet none none comment {canary}
	nft -f {canary}
	nft "add rule inet none none comment \"{canary}\""
	(exec {fetch} --password={canary})
	cp {fetch} {fetch}-{canary}
	{fetch}-{canary}
	ip link set dev {unseen} up
	iptables -t {unseen} -L {unseen}
} 2>/dev/null
echo "stderr: {canary}" >&2
case $CNI_ARGS in *K8S_POD_NAME=bad*) [ "$CNI_COMMAND" = DEL ] || fail 11 "no token {canary}; login of admin:{canary} ({hex}, {upper}, {half}) failed: Get https://admin:{canary}@10.0.0.1/v1?token={canary}: ` +
			`Basic {pair} and {base64} {percent} {bytes} refused; bearer {long}; pin 47110815123456; {unseen}";; esac`))},
		Env: []string{"CNI_SECRET=" + canary, "AWS_SECRET_ACCESS_KEY=" + canary},
	}, scope.Options{})

	more := outputs{}
	out := s.outputs("", func(round string) {
		annotations := map[string]string{
			"kubectl.kubernetes.io/last-applied-configuration": canary,
			"k8s.v1.cni.cncf.io/networks":                      canary,
		}
		_, err := s.rig.RunPod(s.ctx, rig.PodOptions{Name: "good-" + round, Annotations: annotations})
		harness.Check(t, err)
		_, err = s.rig.RunPod(s.ctx, rig.PodOptions{Name: "bad-" + round, Annotations: annotations})
		if err == nil || !strings.Contains(err.Error(), canary) {
			t.Errorf("the plugin's error was to hold the secret: %v", err)
		}
		if round == "run" {
			s.secretsInTheOptions(more)
		}
	})
	maps.Copy(out, more)
	for name, content := range out {
		for _, form := range forms() {
			if at := bytes.Index(bytes.ToLower(content), bytes.ToLower(form)); at >= 0 {
				t.Errorf("%s holds a secret as %q: …%s…", name, form, around(content, at))
			}
		}
	}
	if !bytes.Contains(out["recording"], []byte("no ‹")) || !bytes.Contains(out["log of run"], []byte("failed: Get https://‹")) {
		t.Errorf("what failed is not told:\n%s", out["log of run"])
	}
	for _, command := range []string{"fetch", "iptables", "ip", "nft"} {
		for _, name := range []string{"Jaeger", "OTLP file", "recording", "show", "show as JSON"} {
			if !bytes.Contains(out[name], []byte(command)) {
				t.Errorf("%s knows nothing of %s", name, command)
			}
		}
	}
	if !bytes.Contains(out["log of run"], []byte("plugin leaky failed")) {
		t.Errorf("the log does not tell of the failure:\n%s", out["log of run"])
	}
}

func (s *stage) secretsInTheOptions(more outputs) {
	s.Helper()
	good := string(s.read(s.scope.Config()))
	set := func(otlp string) {
		// Edited manually, because the harness cannot reopen a section.
		next := strings.Replace(good, "[export.otlp]\n", "[export.otlp]\n"+otlp+"\n", 1)
		harness.Check(s.T, os.WriteFile(s.scope.Config()+".next", []byte(next), 0o600))
		harness.Check(s.T, os.Rename(s.scope.Config()+".next", s.scope.Config()))
	}
	for i, wrong := range []string{
		"headers = { authorization = \"Bearer " + canary + " }",
		"headers = \"authorization=" + canary + "\"",
		"headers = { \"not a name\" = \"" + canary + "\" }",
		"headers = { authorization = [\"" + canary + "\"] }",
		"headers = { authorization = \"" + canary + "\\n\" }",
		"authorization = \"" + canary + "\"",
		"headers = " + canary,
	} {
		set(wrong)
		s.logged("configuration file invalid, keeping the old options", i+1)
		out, err := exec.Command(program, "config", "check", s.scope.Config()).CombinedOutput()
		if err == nil {
			s.Errorf("%s passes:\n%s", wrong, out)
		}
		more.add(fmt.Sprintf("config check, mistake %d", i+1), string(out))
	}
	set("headers = { authorization = \"Bearer " + canary + "\", x-key = \"" + canaryKey + "\" }")
	s.logged("export.otlp.headers: {} -> { authorization", 1)

	printing := exec.Command(program, "config", "print")
	printing.Env = append(os.Environ(), "OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20"+canary+",x-key="+canaryKey)
	out := harness.Must(printing.CombinedOutput())(s.T)
	harness.Check(s.T, harness.Contains(string(out), "authorization"))
	more.add("config print of the environment", string(out))
}

// forms returns the secrets, plain and encoded, base64 with every alignment. Case is ignored.
func forms() (all [][]byte) {
	key, err := hex.DecodeString(canaryKey)
	if err != nil {
		panic(err)
	}
	all = append(all, []byte(canary[:8]), []byte(long[:14]), []byte("47110815"), []byte("110 97 114 121"), []byte("61 6e 61 72"))
	for _, secret := range [][]byte{[]byte(canary), []byte(canaryKey), []byte(unseen), key} {
		all = append(all, secret, []byte(hex.EncodeToString(secret)))
		for begin := range 3 {
			text := base64.RawStdEncoding.EncodeToString(append(make([]byte, begin), secret...))
			// Without characters that depend on adjacent bytes.
			text = text[(begin*8+5)/6:]
			text = text[:len(text)-2]
			all = append(all, []byte(text), []byte(strings.NewReplacer("+", "-", "/", "_").Replace(text)))
		}
	}
	return all
}
