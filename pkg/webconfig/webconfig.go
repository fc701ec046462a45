// Package webconfig reads access rules of Prometheus' exporters (prometheus/exporter-toolkit,
// docs/web-configuration.md). cniscope runs as root beside pods, so files are checked first and reread once a
// second, and password guessing is slow.
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

	"github.com/cniscope/cniscope/pkg/disk"
	"github.com/cniscope/cniscope/pkg/text"
)

// maxFile bounds a file in bytes, as Kubernetes a Secret.
const maxFile = 1 << 20

// Summary is what clients need.
type Summary struct {
	TLS, ClientCertificates, Users bool
	Expires                        time.Time
	Exposed                        string
}

// Check reads the file and those it names. Its error shows no values.
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

func load(path string) (http.Handler, *tls.Config, files, error) {
	named, err := look(path)
	if err != nil {
		return nil, nil, named, err
	}
	// Only a server provides the toolkit's handler, so one stops at once.
	//nolint:gosec // it serves no request
	server := &http.Server{Handler: http.HandlerFunc(pass), Protocols: new(http.Protocols)}
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
		err := errors.New("client_ca_file contains no PEM certificate, so every client would be rejected")
		return nil, nil, named, told(path, err)
	}
	if config.ClientAuth >= tls.VerifyClientCertIfGiven && config.ClientCAs == nil {
		return nil, nil, named, told(path,
			errors.New("client_auth_type asks for certificates, but no client_ca_file says who signs them: one of any public "+
				"authority would do"))
	}
	config.Certificates, config.GetCertificate = []tls.Certificate{*certificate}, nil
	return server.Handler, config, named, nil
}

type closed struct{}

func (closed) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (closed) Close() error              { return nil }
func (closed) Addr() net.Addr            { return new(net.TCPAddr) }

func asksForPassword(h http.Handler) bool {
	answer := &verdict{ResponseWriter: discarded{}}
	h.ServeHTTP(answer, &http.Request{Method: http.MethodGet, Header: http.Header{}})
	return !answer.passed
}

type discarded struct{}

func (discarded) Header() http.Header         { return http.Header{} }
func (discarded) WriteHeader(int)             {}
func (discarded) Write(b []byte) (int, error) { return len(b), nil }

type files struct {
	Cert string `yaml:"cert_file"`
	Key  string `yaml:"key_file"`
	CA   string `yaml:"client_ca_file"`
}

// look refuses pipes, devices and long files; the toolkit reports other mistakes.
func look(path string) (files, error) {
	var named struct {
		TLS files `yaml:"tls_server_config"`
	}
	text, err := readable(path)
	if err != nil {
		return named.TLS, err
	}
	if yaml.Unmarshal(text, &named) != nil {
		named.TLS = files{} // may be incomplete
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
	data, err := disk.ReadRegular(disk.System(), path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no file %s", text.Clean(path, text.Bound))
	}
	return data, err
}

var quotedValue = regexp.MustCompile("`[^`]*`")

// goType matches the expected type in such an error.
var goType = regexp.MustCompile(` (in type|into) (map\[\S+\])?\w+\.\w+`)

// told returns the toolkit's error in one line without values: one may be a misplaced password.
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
