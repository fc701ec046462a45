package redact

import (
	"os"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

func call(t testing.TB) *Call {
	c := &Call{}
	c.Name("web-7f9c6-x2b4n", "shop", "eth0", "bridge-net",
		"b6385006e8b3eedeaa1fd60e3e69afc9fb758a27666c93708a9211b3c988ab34",
		"cni-2739c4ea-53b0-b820-12c8-cef6ac666ee2", "veth1a2b3c4d", "cali12d4a061371")
	if !c.Configuration([]byte(`{"cniVersion":"1.0.0","name":"bridge-net","type":"bridge","bridge":"cni0","isGateway":true,"mtu":1450,
		"token":"Xq7Canary9ZtSecret","etcd_endpoints":"https://root:hunter2pass@10.1.2.3:2379","log_level":"info","logFile":"/var/log/cni.log",
		"kubernetes":{"kubeconfig":"/etc/cni/net.d/calico-kubeconfig","k8s_api_root":"https://10.96.0.1:443"},
		"ipam":{"type":"host-local","subnet":"10.88.0.0/16","routes":[{"dst":"0.0.0.0/0"}]},"capabilities":{"portMappings":true}}`)) {
		t.Fatal("no configuration")
	}
	return c
}

// In 95 of 100 real lines, everything marked by hand as essential survives redaction.
func TestRealMessagesAreUnderstood(t *testing.T) {
	for _, file := range []string{"messages.txt", "unseen.txt"} {
		lines, whole := 0, 0
		for _, line := range strings.Split(read(t, file), "\n") {
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			lines++
			out := call(t).Message(strings.NewReplacer("«", "", "»", "", "¦", "").Replace(line))
			good := true
			for _, telling := range marked(line, "«", "»") {
				good = good && strings.Contains(out, telling)
			}
			for _, secret := range marked(line, "¦", "¦") {
				if strings.Contains(out, secret) {
					t.Errorf("%s: %q stays in\n%s", file, secret, out)
				}
			}
			if good {
				whole++
			} else {
				t.Logf("%s:\n  %s\n  %s", file, line, out)
			}
		}
		t.Logf("%s: %d of %d lines tell what failed", file, whole, lines)
		if whole*100 < lines*95 {
			t.Errorf("%s: that is less than 95%%", file)
		}
	}
}

func read(t *testing.T, file string) string {
	b := harness.Must(os.ReadFile("testdata/" + file))(t)
	return string(b)
}

// marked lists texts between two marks, without the other kind of marks.
func marked(line, from, to string) (all []string) {
	for {
		_, rest, found := strings.Cut(line, from)
		if !found {
			return all
		}
		var piece string
		piece, line, _ = strings.Cut(rest, to)
		all = append(all, strings.NewReplacer("«", "", "»", "", "¦", "").Replace(piece))
	}
}
