package webconfig

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/cniscope/cniscope/test/harness"
)

func TestWhatAFileAsksFor(t *testing.T) {
	f := newFolder(t)
	f.server(newAuthority(t), time.Hour)
	for text, want := range map[string]Summary{
		"":                            {},
		plainTLS:                      {TLS: true},
		mutual:                        {TLS: true, ClientCertificates: true},
		users(t, "a", "b"):            {Users: true},
		plainTLS + users(t, "a", "b"): {TLS: true, Users: true},
		"rate_limit:\n  interval: 1s\n  burst: 1000\n":          {},
		plainTLS + "  client_auth_type: RequireAnyClientCert\n": {TLS: true}, // any client can create one
	} {
		got, err := Check(f.write("web.yml", text))
		if got.Expires.IsZero() == got.TLS {
			t.Errorf("%q: expires %v", text, got.Expires)
		}
		got.Expires = time.Time{}
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", text, got, err, want)
		}
	}
}

func TestMistakes(t *testing.T) {
	f := newFolder(t)
	a := newAuthority(t)
	f.server(a, time.Hour)
	other, _ := a.issue("other", time.Hour)
	f.write("other.crt", string(other))
	f.write("empty", "")
	harness.Check(t, os.Mkdir(filepath.Join(f.dir, "folder"), 0o700))
	f.write("long", strings.Repeat("#", maxFile+1))
	for text, say := range map[string]string{
		"tls_config:\n  cert_file: tls.crt\n":                             "line 1: field tls_config not found",
		"tls_server_config:\n  cert_file: tls.crt\n  keyfile: tls.key\n":  "line 3: field keyfile not found",
		"tls_server_config:\n  cert_file: tls.crt\n":                      "missing one of key or key_file",
		"tls_server_config:\n  cert_file: none\n  key_file: tls.key\n":    "there is no file " + filepath.Join(f.dir, "none"),
		"tls_server_config:\n  cert_file: folder\n  key_file: tls.key\n":  "is not a regular file",
		"tls_server_config:\n  cert_file: long\n  key_file: tls.key\n":    "longer than 1048576 bytes",
		"tls_server_config:\n  cert_file: empty\n  key_file: tls.key\n":   "failed to find any PEM data",
		"tls_server_config:\n  cert_file: other.crt\n  key_file: tls.key": "private key does not match public key",
		plainTLS + "  client_ca_file: ca.crt\n":                           "without a Client Auth Policy",
		plainTLS + "  client_auth_type: RequireAndVerifyClientCert\n":     "no client_ca_file",
		strings.Replace(mutual, "ca.crt", "empty", 1):                     "contains no PEM certificate",
		plainTLS + "  client_auth_type: Require\n":                        "invalid ClientAuth",
		plainTLS + "  min_version: TLS9\n":                                "unknown TLS version",
		"basic_auth_users:\n  prometheus: hunter2hunter2\n":               "not a bcrypt hash",
		"basic_auth_users: hunter2hunter2\n":                              "line 1: cannot unmarshal",
		"basic_auth_users:\n\t- x\n":                                      "line 2",
		"http_server_config:\n  headers:\n    X-Mine: y\n":                "can not be configured",
		"hunter2hunter2":         "line 1",
		"{":                      "line 1",
		"a: &a [*a]\nb: [*a,*a]": "",
	} {
		_, err := Check(f.write("web.yml", text))
		if err == nil {
			t.Errorf("%q is taken", text)
			continue
		}
		if said := err.Error(); !strings.Contains(said, say) || strings.Contains(said, "hunter2") ||
			strings.Contains(said, "\n") || strings.Contains(said, "web.Config") {
			t.Errorf("%q: %q, want %q", text, said, say)
		}
	}
	for path, say := range map[string]string{
		filepath.Join(f.dir, "none"):   "there is no file",
		filepath.Join(f.dir, "folder"): "not a regular file",
		filepath.Join(f.dir, "long"):   "longer than 1048576 bytes",
		"/dev/zero":                    "not a regular file",
	} {
		if _, err := Check(path); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%s: %v, want %q", path, err, say)
		}
	}
}

// Valid, but worth a warning.
func TestAnExposedKeyAndAnExpiredCertificate(t *testing.T) {
	f := newFolder(t)
	f.server(newAuthority(t), -time.Hour)
	key := filepath.Join(f.dir, "tls.key")
	harness.Check(t, os.Chmod(key, 0o644))
	s, err := Check(f.write("web.yml", plainTLS))
	if err != nil || s.Exposed != key || !s.Expires.Before(time.Now()) {
		t.Errorf("%+v, %v", s, err)
	}
}

type authority struct {
	*testing.T
	*harness.Authority
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	a := harness.Must(harness.NewAuthority())(t)
	return authority{t, a}
}

// issue returns a certificate and its key as PEM.
func (a authority) issue(name string, valid time.Duration) (certificate, key []byte) {
	a.Helper()
	pair, err := a.Issue(name, valid)
	harness.Check(a.T, err)
	certificate, key, err = harness.PEM(pair)
	harness.Check(a.T, err)
	return certificate, key
}

type folder struct {
	*testing.T
	dir string
}

func newFolder(t *testing.T) folder { return folder{t, t.TempDir()} }

func (f folder) write(name, text string) string {
	f.Helper()
	path := filepath.Join(f.dir, name)
	harness.Check(f, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func (f folder) server(a authority, valid time.Duration) {
	f.Helper()
	certificate, key := a.issue("server", valid)
	f.write("tls.crt", string(certificate))
	f.write("tls.key", string(key))
	f.write("ca.crt", string(a.PEM()))
}

const (
	plainTLS = "tls_server_config:\n  cert_file: tls.crt\n  key_file: tls.key\n"
	mutual   = plainTLS + "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: ca.crt\n"
)

func users(t *testing.T, name, password string) string {
	t.Helper()
	hash := harness.Must(bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost))(t)
	return "basic_auth_users:\n  " + name + ": " + string(hash) + "\n"
}

// A scraper has a turn soon among the maximum of guessing requests.
func TestAScraperAmongGuessers(t *testing.T) {
	one := func(int) string { return "10.0.0.1:1" }
	loopback := func(i int) string { return fmt.Sprintf("127.0.%d.%d:1", i%7, i) }
	for name, test := range map[string]struct {
		guesser func(i int) string
		scraper string
		waiting int
		most    int
	}{
		"one address, it has another":         {one, "10.0.0.2:1", waitingMax - 1, 60},
		"one address, it has the same":        {one, "10.0.0.1:2", 40, 40},
		"all of loopback, it has another":     {loopback, "10.0.0.2:1", waitingMax - 1, 60},
		"all of loopback, it has one of them": {loopback, "127.0.0.1:2", 40, 40},
		"a network of IPv6, it has another": {
			func(i int) string { return fmt.Sprintf("[2001:db8::%x]:1", i) },
			"[2001:db8:0:1::1]:1", waitingMax - 1, 60,
		},
		"links of IPv6, it has an IPv4 address": {
			func(i int) string { return fmt.Sprintf("[fe80::%x%%eth%d]:1", i, i) },
			"10.0.0.2:1", waitingMax - 1, 60,
		},
		"IPv4 in IPv6, it has another": {
			func(i int) string { return fmt.Sprintf("[::ffff:127.0.0.%d]:1", i%250) },
			"10.0.0.2:1", waitingMax - 1, 60,
		},
		"forty addresses": {
			func(i int) string { return fmt.Sprintf("10.0.1.%d:1", i%40) },
			"10.0.0.2:1", 40, 80,
		},
	} {
		t.Run(name, func(t *testing.T) {
			q := &Turns{taken: true}
			for i := range test.waiting {
				q.wait(Source(test.guesser(i)))
			}
			scraper := q.wait(Source(test.scraper))
			for i := range test.most + 1 {
				q.Pass()
				if len(scraper.admits) > 0 {
					if !<-scraper.admits {
						t.Error("it was sent away")
					}
					return
				}
				q.wait(Source(test.guesser(i)))
			}
			t.Errorf("it still waits after %d others", test.most)
		})
	}
}

// A source with all places loses one to another source.
func TestACrowdMakesRoom(t *testing.T) {
	q := &Turns{taken: true}
	var last *waiter
	for range waitingMax {
		last = q.wait(Source("10.0.0.1:1"))
	}
	scraper := q.wait(Source("10.0.0.2:1"))
	if len(last.admits) != 1 || <-last.admits {
		t.Error("the newest of the crowd was not sent away")
	}
	if more := q.wait(Source("10.0.0.1:1")); len(more.admits) != 1 || <-more.admits {
		t.Error("one more of the crowd was not sent away")
	}
	if len(scraper.admits) != 0 || len(q.waiting) != waitingMax {
		t.Errorf("%d wait", len(q.waiting))
	}
}

// A disconnected client holds no turn.
func TestWhoGoesHoldsNoTurn(t *testing.T) {
	q := new(Turns)
	first, second, third := q.wait(Source("10.0.0.1:1")), q.wait(Source("10.0.0.2:1")), q.wait(Source("10.0.0.3:1"))
	q.give(second)
	q.give(first)
	if len(q.waiting) != 0 || !<-third.admits {
		t.Error("the turn is lost")
	}
	q.give(&waiter{admits: admitted(true)})
	if q.taken {
		t.Error("the turn is lost with the last")
	}
}

func admitted(is bool) chan bool {
	c := make(chan bool, 1)
	c <- is
	return c
}
