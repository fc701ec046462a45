// Package webconfig reads the file that says who may read the metrics: TLS, client certificates and users with
// passwords, in the format of Prometheus' own exporters (prometheus/exporter-toolkit, docs/web-configuration.md).
//
// What the toolkit does is not repeated here. Around it are the bounds that a program needs that runs as root
// beside every pod: files are looked at before they are read, certificates are read once a second at most (the
// toolkit itself reads who the users are with each request), and whoever guesses passwords is made to wait.
package webconfig

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/prometheus/exporter-toolkit/web"
	"go.yaml.in/yaml/v3"

	"github.com/cniscope/cniscope/pkg/text"
)

// maxFile bounds each file, in bytes: what a Secret holds at most (1 MiB, Kubernetes documentation).
const maxFile = 1 << 20

// Summary says what a file asks of whoever connects.
type Summary struct {
	TLS, ClientCertificates, Users bool
	// Expires is when the server's certificate does; zero without one.
	Expires time.Time
	// Exposed is the file of the private key, where users other than its owner and group can read it.
	Exposed string
}

// Check reads the file and those that it names. The error is one line that says what is wrong and, of
// mistakes in the file itself, where. It holds no values.
func Check(path string) (Summary, error) {
	handler, config, named, err := load(path)
	if err != nil {
		return Summary{}, err
	}
	s := Summary{TLS: config != nil, Users: asksForPassword(handler)}
	if info, err := os.Stat(named.Key); err == nil && named.Key != "" && info.Mode()&0o004 != 0 {
		s.Exposed = named.Key
	}
	if config == nil {
		return s, nil
	}
	s.ClientCertificates = config.ClientAuth == tls.RequireAndVerifyClientCert
	leaf, err := x509.ParseCertificate(config.Certificates[0].Certificate[0])
	if err != nil {
		return s, told(path, err)
	}
	s.Expires = leaf.NotAfter
	return s, nil
}

// load has the toolkit make its handler, with pass behind it, and its TLS configuration, nil where the file asks
// for none.
func load(path string) (http.Handler, *tls.Config, files, error) {
	named, err := look(path)
	if err != nil {
		return nil, nil, named, err
	}
	// The toolkit keeps its handler to itself: it is had from a server that ends before it has served anybody.
	server := &http.Server{Handler: http.HandlerFunc(pass), Protocols: new(http.Protocols)} //nolint:gosec // it serves nobody
	server.Protocols.SetHTTP1(true)
	err = web.Serve(closed{}, server, &web.FlagConfig{WebConfigFile: &path}, slog.New(slog.DiscardHandler))
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return nil, nil, named, told(path, err)
	}
	if server.TLSConfig == nil {
		return server.Handler, nil, named, nil
	}
	config, err := server.TLSConfig.GetConfigForClient(nil)
	if err != nil {
		return nil, nil, named, told(path, err)
	}
	certificate, err := config.GetCertificate(nil)
	if err != nil {
		return nil, nil, named, told(path, err)
	}
	if config.ClientCAs != nil && config.ClientCAs.Equal(x509.NewCertPool()) {
		return nil, nil, named, told(path, errors.New("client_ca_file holds no PEM certificate: nobody would be let in"))
	}
	if config.ClientAuth >= tls.VerifyClientCertIfGiven && config.ClientCAs == nil {
		return nil, nil, named, told(path, errors.New("client_auth_type asks for certificates, but no client_ca_file says who signs them: one of any public authority would do"))
	}
	config.Certificates, config.GetCertificate = []tls.Certificate{*certificate}, nil
	return server.Handler, config, named, nil
}

// closed is a listener that has been closed.
type closed struct{}

func (closed) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (closed) Close() error              { return nil }
func (closed) Addr() net.Addr            { return new(net.TCPAddr) }

// asksForPassword reports whether somebody without one is refused.
func asksForPassword(h http.Handler) bool {
	answer := &verdict{ResponseWriter: nobody{}}
	h.ServeHTTP(answer, &http.Request{Method: http.MethodGet, Header: http.Header{}})
	return !answer.passed
}

// nobody takes an answer that nobody reads.
type nobody struct{}

func (nobody) Header() http.Header         { return http.Header{} }
func (nobody) WriteHeader(int)             {}
func (nobody) Write(b []byte) (int, error) { return len(b), nil }

// files are those that a web configuration names.
type files struct {
	Cert string `yaml:"cert_file"`
	Key  string `yaml:"key_file"`
	CA   string `yaml:"client_ca_file"`
}

// look finds what is named, and refuses what must not be read: pipes and devices, which would block, and
// what is too long. Of everything else the toolkit says what is wrong.
func look(path string) (files, error) {
	var named struct {
		TLS files `yaml:"tls_server_config"`
	}
	text, err := readable(path)
	if err != nil {
		return named.TLS, err
	}
	if yaml.Unmarshal(text, &named) != nil {
		named.TLS = files{} // what could be read may be half of it
	}
	for _, file := range []*string{&named.TLS.Cert, &named.TLS.Key, &named.TLS.CA} {
		if *file == "" {
			continue
		}
		if !filepath.IsAbs(*file) {
			*file = filepath.Join(filepath.Dir(path), *file)
		}
		if _, err := readable(*file); err != nil {
			return named.TLS, err
		}
	}
	return named.TLS, nil
}

func readable(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no file %s", text.Clean(path, text.Bound))
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", text.Clean(path, text.Bound))
	case info.Size() > maxFile:
		return nil, fmt.Errorf("%s is longer than 1 MiB", text.Clean(path, text.Bound))
	}
	return os.ReadFile(path)
}

// quotedValue is how the YAML parser shows the value that it could not read.
var quotedValue = regexp.MustCompile("`[^`]*`")

// goType is how it names what it expected.
var goType = regexp.MustCompile(` (in type|into) (map\[\S+\])?\w+\.\w+`)

// told is the toolkit's error in one line, without values: one of them may be a password in the wrong place.
func told(path string, err error) error {
	lines := strings.Fields(quotedValue.ReplaceAllString(err.Error(), "…"))
	said := strings.Join(lines, " ")
	said = goType.ReplaceAllString(said, "")
	said = strings.TrimPrefix(strings.TrimPrefix(said, "yaml: "), "unmarshal errors: ")
	if strings.Contains(said, "bcrypt") || strings.Contains(said, "hashedSecret") {
		said = "a password in basic_auth_users is not a bcrypt hash (make one by htpasswd -nBC 10 \"\" | tr -d ':\\n')"
	}
	return fmt.Errorf("%s: %s", text.Clean(path, text.Bound), text.Clean(said, 4*text.Bound))
}
