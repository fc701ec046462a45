package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
)

func TestOptionsAreSetOverTheDefaults(t *testing.T) {
	tests := []struct {
		name, text string
		want       func(*Options)
	}{
		{"an empty file", "", func(*Options) {}},
		{"a byte order mark is skipped", "\ufeff[log]\nlevel = \"warn\"", func(o *Options) { o.Log.Level = "warn" }},
		{"nothing is kept", "sampling.keep = []", func(o *Options) { o.Sampling.Keep = nil }},
		{"twice the same is once", `sampling.keep = ["failed", "slow", "failed"]`, func(o *Options) { o.Sampling.Keep = []string{"slow", "failed"} }},
		{"durations", "[slow]\ncommand = \"1m30s\"\ncall = \"100us\"", func(o *Options) {
			o.Slow.Command, o.Slow.Call = 90*time.Second, 100*time.Microsecond
		}},
		{"rules keep their order", `
[[slow.rule]]
command = "ip*tables*"
threshold = "1s"
[[slow.rule]]
command = "*"
threshold = "2s"
`, func(o *Options) { o.Slow.Rules = []Rule{{"ip*tables*", time.Second}, {"*", 2 * time.Second}} }},
		{"sizes with and without unit", "probe.ring = \"64KiB\"\nexport.spool.max_bytes = 16777216", func(o *Options) {
			o.Probe.Ring, o.Export.Spool.MaxBytes = 64<<10, 16<<20
		}},
		{"attributes with dots, with and without quotes", `
[resource.attributes]
"a.b" = "1"
c.d.e = "2"
`, func(o *Options) { o.Resource.Attributes = map[string]string{"a.b": "1", "c.d.e": "2"} }},
		{"header names are lower-case", `export.otlp.headers = { Authorization = "Bearer x" }`, func(o *Options) {
			o.Export.OTLP.Headers = map[string]Secret{"authorization": newSecret("Bearer x")}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := harness.Must(Parse("test.toml", []byte(tt.text)))(t)
			want := Default()
			tt.want(&want)
			harness.DeepEqual(t, got, want, got.TOML(), want.TOML())
		})
	}
}

func TestErrorsNamePlaceKeyFaultAndRemedy(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"not TOML", "[slow]\ncommand = 250ms\n", []string{"f.toml:2:14: is not TOML (", "configs/cniscope.toml"}},
		{"a key twice", "[slow]\ncall = \"1s\"\ncall = \"2s\"\n", []string{"f.toml:3:1: is not TOML (key call is already defined)"}},
		{"an unknown key", "[slow]\ncomand = \"1s\"\n", []string{`f.toml:2:1: slow.comand: is not an option; did you mean slow.command?`}},
		{"a key of another section", "[export]\nendpoint = \"http://a:1\"\n", []string{`f.toml:2:1: export.endpoint: is not an option; did you mean export.otlp.endpoint?`}},
		{"an unknown section, once", "[sampeling]\nratio = 1\nx = 2\n", []string{`f.toml:1:2: sampeling: is not a section; did you mean sampling?`}},
		{"nothing is near", "[slow]\nzzzzzzzzz = 1\n", []string{`f.toml:2:1: slow.zzzzzzzzz: is not an option; [slow] has command, call, agent, lock, hung, readiness, first_connection, baseline, baseline_dir, rule`}},
		{"no section is near", "[zzzzzzzzz]\nx = 1\n", []string{`f.toml:1:2: zzzzzzzzz: is not a section; the sections are sampling, slow, trace, export, export.otlp,`}},
		{"no section", "slow = 3\n", []string{`f.toml:1:1: slow: is a number, but it is a section; write [slow] on a line of its own`}},
		{"a number for a duration", "slow.command = 250\n", []string{`f.toml:1:6: slow.command: is a number; write a number with its unit, such as "250ms" or "2s", from 1µs to 24h`}},
		{"not a duration", "slow.command = \"fast\"\n", []string{`slow.command: "fast" is not a duration`}},
		{"a share out of range", "sampling.ratio = 1.5\n", []string{`f.toml:1:10: sampling.ratio: 1.5 is out of range; write a number from 0 to 1`}},
		{"text for yes and no", "nri.enabled = \"yes\"\n", []string{`nri.enabled: is text; write true or false, without quotes`}},
		{"a count out of range", "limits.images = 0\n", []string{`limits.images: 0 is out of range; write a whole number from 16 to 5000`}},
		{"a relative path", "state.dir = \"run\"\n", []string{`state.dir: "run" is not an absolute path`}},
		{"a port that is none", "metrics.listen = \":90000\"\n", []string{`metrics.listen: "90000" is not a port`}},
		{"an unknown word", "sampling.keep = [\"slow\",\n  \"fialed\"]\n", []string{`f.toml:2:3: sampling.keep[1]: "fialed" is not known; write any of "slow", "failed", "hung", "partial"`}},
		{"not a power of two", "probe.ring = \"3MiB\"\n", []string{`probe.ring: 3MiB is not a power of two; write a number with its unit, such as "8MiB", from 64KiB to 64MiB, a power of two`}},
		{"control characters", "resource.node = \"a\\u001b[31m\"\n", []string{`resource.node: has characters that cannot be printed`}},
		{"a bad pattern", "[[slow.rule]]\ncommand = \"a[\"\nthreshold = \"1s\"\n", []string{`f.toml:2:1: slow.rule[0].command: "a[" is not a pattern`}},
		{"a slip in a former section", "[run]\ndirr = \"/run/c\"\n", []string{`f.toml:2:1: run.dirr: is not an option`}},
		{"a caller without a path", "probe.callers = [\"/usr/bin/a\",\n  \"containerd\"]\n", []string{`f.toml:2:3: probe.callers[1]: "containerd" names no path; write it from the root, such as "/usr/bin/cri-dockerd"`}},
		{"rootless that nobody is", "probe.rootless = true\n", []string{`probe.rootless: does nothing alone; name the runtime's program in probe.callers`}},
		{"faults in the second rule", `
[[slow.rule]]
command = "a"
threshold = "1s"
[[slow.rule]]
command = "b"
treshold = "1s"
`, []string{`f.toml:5:8: slow.rule[1]: threshold is missing; a rule has command and threshold`, `f.toml:7:1: slow.rule[1].treshold: is not an option; did you mean threshold?`}},
		{"an attribute of its own option", "[resource.attributes]\n\"k8s.node.name\" = \"a\"\n", []string{`f.toml:2:1: resource.attributes."k8s.node.name": cannot be set here; set node, in [resource]`}},
		{"an attribute twice", "[resource.attributes]\n\"a.b\" = \"1\"\na.b = \"2\"\n", []string{`resource.attributes."a.b": is there twice`}},
		{"a header of gRPC", "[export.otlp.headers]\ngrpc-timeout = \"1\"\n", []string{`f.toml:2:1: export.otlp.headers.grpc-timeout: belongs to gRPC itself`}},
		{"an endpoint with a path alone", "export.otlp.endpoint = \"a:4318/v1/traces\"\n", []string{`export.otlp.endpoint: has a path and no scheme`}},
		{"plain text and https", "[export.otlp]\nendpoint = \"https://a:1\"\ninsecure = true\n", []string{`f.toml:3:1: export.otlp.insecure: says plain text, but the endpoint says https://`}},
		{"a ca without TLS", "[export.otlp]\nendpoint = \"http://a:1\"\nca = \"/ca.pem\"\n", []string{`f.toml:3:1: export.otlp.ca: does nothing without TLS; write https://`}},
		{"a ca that is not there", "[export.otlp]\nca = \"/does/not/exist.pem\"\n", []string{`f.toml:2:1: export.otlp.ca: stat /does/not/exist.pem: no such file or directory; name a readable PEM file`}},
		{"a certificate without its key", "[export.otlp]\ncert = \"/c.pem\"\n", []string{`export.otlp.cert: is there without a key; set key too`}},
		{"a relay that others can reach", "relay.listen = \"0.0.0.0:4319\"\n", []string{`relay.listen: "0.0.0.0:4319" can be reached by others; write "127.0.0.1:4319"`}},
		{"a relay without an address", "relay.listen = \"localhost:4319\"\n", []string{`relay.listen: "localhost:4319" does not say which address; write "127.0.0.1:4319"`}},
		{"a relay where metrics are", "relay.listen = \"127.0.0.1:9471\"\nmetrics.listen = \"127.0.0.1:9471\"\n", []string{`f.toml:1:7: relay.listen: is the address of metrics.listen; write another port`}},
		{"a relay where health is", "relay.listen = \"127.0.0.1:9472\"\nmetrics.listen = \":9471\"\nmetrics.health_listen = \"localhost:9472\"\n", []string{`relay.listen: is the address of metrics.health_listen`}},
		{"a relay among all addresses", "relay.listen = \"127.0.0.1:9471\"\nmetrics.listen = \":9471\"\n", []string{`relay.listen: is the address of metrics.listen`}},
		{"a relay to itself", "relay.listen = \"127.0.0.1:4319\"\nexport.otlp.endpoint = \"http://127.0.0.1:4319\"\n", []string{`f.toml:2:13: export.otlp.endpoint: the relay would send to itself; name the real endpoint`}},
		{"all at once, in the order of the file", `
[log]
level = "loud"
[slow]
call = 2
what = 1
[sampling]
ratio = 2.0
`, []string{"f.toml:3:1: log.level:", "f.toml:5:1: slow.call:", "f.toml:6:1: slow.what:", "f.toml:8:1: sampling.ratio:"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Parse("f.toml", []byte(tt.text))
			var problems Problems
			if !errors.As(err, &problems) {
				t.Fatalf("error %v, want Problems", err)
			}
			harness.DeepEqual(t, got, Default(), "options changed in spite of the error")
			rest := err.Error()
			for _, want := range tt.want {
				_, after, ok := strings.Cut(rest, want)
				if !ok {
					t.Fatalf("got\n%v\nwant in it\n%s", err, want)
				}
				rest = after
			}
		})
	}
}

func TestAFileThatIsNotOursGivesAShortError(t *testing.T) {
	_, err := Parse("f.toml", []byte(strings.Repeat("[[x]]\n", 3)+strings.Repeat("a1 = 1\n", 1)))
	if err == nil {
		t.Fatal("no error")
	}
	var b strings.Builder
	for i := range 1000 {
		b.WriteString(quote(strings.Repeat("k", i+1)) + " = 1\n")
	}
	_, err = Parse("f.toml", []byte(b.String()))
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != problemsShown+1 || !strings.HasSuffix(lines[problemsShown], "and 980 more") {
		t.Errorf("%d lines, the last: %s", len(lines), lines[len(lines)-1])
	}
	for _, l := range lines {
		if len(l) > 1024 {
			t.Errorf("a line of %d bytes", len(l))
		}
	}
}

// Each once caused deep recursion or much memory.
func TestHostileTextIsRefusedAtOnce(t *testing.T) {
	many := strings.Repeat
	for name, text := range map[string]string{
		"too long":            many("#", maxFile+1),
		"lists in lists":      "x = " + many("[", maxFile/2),
		"tables in tables":    "resource.attributes = " + many("{a=", maxFile/4),
		"a key of many parts": "[resource.attributes]\n" + many("a.", maxFile/4) + "b = \"1\"",
		"many long keys":      "[" + many("a.", maxFile/4) + "a]\n" + many("a.b=1\n", 1),
		"many bad words":      "sampling.keep = [" + many("1,", maxFile/4) + "]",
		"many rules":          many("[[slow.rule]]\n", maxFile/16),
		"many attributes":     "[resource.attributes]\n" + lettered(5000),
		"not UTF-8":           "log.level = \"\xff\"",
		"a NUL":               "log.level = \"a\x00\"",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("f.toml", []byte(text))
			if err == nil {
				t.Fatal("no error")
			}
			if n := len(err.Error()); n > 32<<10 {
				t.Errorf("an error of %d bytes", n)
			}
		})
	}
}

// Of a text of a megabyte, few and short parts are looked at, whatever it repeats.
func TestTheWorkOfAHostileTextIsBounded(t *testing.T) {
	full := func(begin, unit, end string) string {
		return begin + strings.Repeat(unit, (maxFile-len(begin)-len(end))/len(unit)) + end
	}
	long := strings.Repeat("x", maxFile/2)
	for name, text := range map[string]string{
		"options":                   full("", "k=1\n", ""),
		"sections":                  full("", "[s]\n", ""),
		"lists":                     full("", "[[slow.rule]]\n", ""),
		"items":                     full("sampling.keep=[", "1,", "]"),
		"items in lists":            full("k=[[[", "1,", "]]]"),
		"tables in a list":          full("slow.rule=[", "{},", "]"),
		"an inline table":           full("k={a={b={", "c=1,", "d=1}}}"),
		"deep down":                 full("k."+strings.Repeat("a.", maxPath)+"k={", "c=1,", "d=1}"),
		"parts of a key":            full("", "a.", "a=1"),
		"attributes":                full("[resource.attributes]\n", "a=\"\"\n", ""),
		"options of a long section": full("["+long+"]\n", "k=1\n", ""),
		"headers of a long table":   full("export.otlp.headers."+long+"={", "a=\"\",", "b=\"\"}"),
		"items of a long list":      full(long+"=[", "1,", "]"),
		"options of long lists":     full("[["+long+"]]\n", "k=1\n", ""),
	} {
		t.Run(name, func(t *testing.T) {
			found, few := locate([]byte(text))
			for path := range found {
				if len(path) > maxPath {
					t.Fatalf("a path of %d bytes", len(path))
				}
			}
			if few || len(found) > maxEntries+1 {
				t.Errorf("%d positions, few: %t", len(found), few)
			}
			if _, err := Parse("f.toml", []byte(text)); err == nil || !strings.Contains(err.Error(), fmt.Sprint("more than ", maxEntries)) {
				t.Error(err)
			}
		})
	}
	below, err := Parse("f.toml", []byte("[resource.attributes."+long+"]\na=\"\"\n"))
	if err == nil || !strings.Contains(err.Error(), "is too long") {
		t.Errorf("%v: %v", below.Resource.Attributes, err)
	}
}

func lettered(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("k" + strings.Repeat("x", i%50) + index(i)[1:len(index(i))-1] + " = \"v\"\n")
	}
	return b.String()
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(Default().TOML()))
	f.Add([]byte("[[slow.rule]]\ncommand = \"a*\"\nthreshold = \"1s\"\n"))
	f.Add([]byte("[export.otlp]\nendpoint = \"http://[::1]:4317\"\nheaders = { a = \"b\" }\n"))
	f.Add([]byte("resource.attributes = { a.b = \"1\", \"c.d\" = \"2\" }\nsampling = { keep = [[1]] }"))
	f.Add([]byte("[resource.attributes." + strings.Repeat("x", 4*maxPath) + "]\n" + lettered(100)))
	f.Add([]byte("[" + strings.Repeat("x", 4*maxPath) + "]\n" + lettered(2*maxEntries)))
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := Parse("f.toml", data)
		if err != nil {
			return
		}
		// Except secrets.
		o.Export.OTLP.Headers = nil
		again, err := Parse("again.toml", []byte(o.TOML()))
		if err != nil {
			t.Fatalf("%v\n%s", err, o.TOML())
		}
		if d := again.Diff(o); len(d) > 0 {
			t.Fatalf("%q", d)
		}
	})
}

func TestLikelyMistakes(t *testing.T) {
	const otlp = "[export.otlp]\n"
	for text, want := range map[string]string{
		otlp + `endpoint = "tempo"`:                                 `2:1: export.otlp.endpoint: "tempo" is not a host and a port; write "http://tempo:4317" (the usual port)`,
		otlp + `endpoint = "http://tempo:"`:                         `"" is not a port`,
		otlp + `endpoint = "http:///v1/traces"`:                     `is not a host and a port`,
		otlp + `endpoint = "grpc://tempo:4317"`:                     `"grpc://" is not supported; write "http://tempo:4317"`,
		otlp + `endpoint = "http://tempo:4318/v1/traces?x=y"`:       `has more than a path behind its port; write "http://host:4317", or "http://host:4318/v1/traces"`,
		otlp + `endpoint = "tempo:4317/v1/traces"`:                  `has a path and no scheme; write "http://tempo:4317/v1/traces"`,
		otlp + `endpoint = "https://a:hunter2@${HOST}:4317"`:        `none is replaced in this file`,
		otlp + `endpoint = "grpc://a:hunter2@tempo:4317"`:           `is not supported`,
		otlp + `endpoint = "a:hunter2@tempo"`:                       `send it as a header`,
		otlp + `protocol = "http/protobuf"`:                         `is OTLP over HTTP`,
		otlp + `tls = true`:                                         `an endpoint with https:// is TLS`,
		otlp + `endpont = "http://tempo:4317"`:                      `did you mean export.otlp.endpoint?`,
		otlp + `endpoint = http://tempo:4317`:                       `2:12: is not TOML (unexpected character U+0068 'h' at start of value); write text in quotes: endpoint = "…"`,
		otlp + "endpoint = \"http://tempo:4317":                     `close the quotes`,
		"[export.jaeger]\nendpoint = \"http://a:1\"":                `1:9: export.jaeger: is not a section; Jaeger accepts OTLP`,
		"[exporters]\notlp = 1":                                     `write [export.otlp]`,
		"export:\n  otlp:\n    endpoint: x":                         `this looks like YAML`,
		`{"export": 1}`:                                             `this looks like JSON`,
		"[export.otlp\nendpoint = \"a:1\"":                          `write ] after the section's name`,
		"[slow]\ncommand = \"1s\"\n[slow]\ncall = \"2s\"":           `3:2: is not TOML (table slow already exists); write each [section] once`,
		"[slow]\ncommand = \"250\"":                                 `"250" has no unit; write "250ms" or "250s"`,
		"[slow]\nthreshold = \"1s\"":                                `write command, call, agent or lock`,
		"[sampling]\nratio = 0,1":                                   `write a point before the decimals`,
		"[sampling]\nrate = 0.1":                                    `did you mean sampling.ratio?`,
		"[sampling]\nkeep = [\"fail\"]":                             `did you mean "failed"?`,
		"[metrics]\nlisten = \"9471\"":                              `is a port without an address`,
		"[metrics]\nlisten = \"*:9471\"":                            `write ":9471"`,
		"[metrics]\nenabled = true":                                 `write listen, such as "127.0.0.1:9471"`,
		"[metrics]\nport = 9471":                                    `write listen, such as "127.0.0.1:9471"`,
		"[prometheus]\nlisten = \":1\"":                             `write [metrics]`,
		"[logging]\nlevel = \"info\"":                               `write [log]`,
		"level = \"info\"":                                          `did you mean log.level?`,
		"[log]\nlevel = \"warning\"":                                `did you mean "warn"?`,
		"[log]\nlevel = \"INFO\"":                                   `did you mean "info"?`,
		"[nri]\nenabled = yes":                                      `write true or false, without quotes`,
		"[nri]\nsocket = \"unix:///run/nri.sock\"":                  `is an address, not a path; write "/run/nri.sock"`,
		"[runtime]\nendpoint = \"/run/containerd/containerd.sock\"": `write socket`,
		"[relay]\nlisten = \":4319\"":                               `write "127.0.0.1:4319"`,
		"[relay]\nlisten = \"0.0.0.0:4320\"":                        `can be reached by others; write "127.0.0.1:4320"`,
		"[export.spool]\nmax_bytes = \"256MB\"":                     `write a number with its unit, such as "8MiB"`,
		"[resource]\ncluster = [\"a\"]":                             `write one text, in quotes`,
		"[probe]\ncallers = \"/usr/bin/x\"":                         `is text, not a list; write up to 16 of them, as ["one", "another"]`,
	} {
		refused(t, Default(), text, want)
	}
}

// refused expects an error with a text and without a secret; options in force where want is empty.
func refused(t *testing.T, base Options, text, want string) {
	t.Helper()
	_, err := Source{Base: base, Text: text, TextName: "f"}.Load()
	if said := fmt.Sprint(err); (want == "") != (err == nil) || want != "" && !strings.Contains(said, want) ||
		strings.Contains(said, "hunter2") {
		t.Errorf("%s\n     %s\nwant %s", text, said, want)
	}
}

// They may be intended.
func TestPortsOfOtherProtocols(t *testing.T) {
	for text, want := range map[string]string{
		"[export.otlp]\nendpoint = \"http://tempo-distributor:4318\"\n":                  `:2:1: export.otlp.endpoint: port 4318 is usually that of OTLP over HTTP, and cniscope speaks OTLP over gRPC, since its endpoint has no path: no span would arrive; write "http://tempo-distributor:4318/v1/traces" (the usual port)`,
		"[export.otlp]\nendpoint = \"https://[2001:db8::1]:04318\"\n":                    `write "https://[2001:db8::1]:4318/v1/traces"`,
		"[export.otlp]\nendpoint = \"tempo:4318\"\n":                                     `write "http://tempo:4318/v1/traces"`,
		"[export.otlp]\nendpoint = \"http://tempo:4318/v1/traces\"\n":                    ``,
		"[export.otlp]\nendpoint = \"http://tempo:4317/v1/traces\"\n":                    `port 4317 is usually that of OTLP over gRPC, and cniscope speaks OTLP over HTTP, since its endpoint has a path: no span would arrive; write "http://tempo:4317" (the usual port)`,
		"[export.otlp]\nendpoint = \"http://jaeger:16686\"\n":                            `Jaeger's page`,
		"[relay]\nlisten = \"127.0.0.1:4319\"\nupstream = \"http://127.0.0.1:4318\"\n":   `:3:1: relay.upstream: port 4318`,
		"[export.otlp]\nendpoint = \"http://tempo:4317\"\n":                              ``,
		"[export.otlp]\nendpoint = \"http://tempo\"\n":                                   `port 80 is usually that of web pages, and cniscope speaks OTLP over gRPC, since its endpoint has no path: no span would arrive; write "http://tempo:4317"`,
		"[export.otlp]\nendpoint = \"http://tempo/v1/traces\"\n":                         ``,
		"[export.otlp]\nendpoint = \"https://tempo\"\n":                                  ``,
		"[export.otlp]\nendpoint = \"https://tempo:443\"\n":                              ``,
		"[export.otlp]\nendpoint = \"https://api.vendor.example:14317\"\n":               ``,
		"[metrics]\nlisten = \"127.0.0.1:9090\"\n[relay]\nlisten = \"127.0.0.1:4318\"\n": ``,
	} {
		warned(t, text, want)
	}
}
