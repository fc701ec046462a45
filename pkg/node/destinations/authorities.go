package destinations

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"sync"

	"golang.org/x/crypto/x509roots/fallback/bundle"

	"github.com/cniscope/cniscope/pkg/config"
)

// tlsOf returns an endpoint's TLS configuration, nil for plain text. By default it trusts the system's authorities, or
// Mozilla's where there are none, as in the image.
func tlsOf(o config.OTLP) (*tls.Config, error) {
	c, err := o.TLS()
	if err != nil || c == nil || c.RootCAs != nil {
		return c, err
	}
	if err := bundled(); err != nil {
		return nil, err
	}
	return c, nil
}

// bundled gives crypto/x509 Mozilla's authorities once needed: x509roots/fallback would parse them at every start.
var bundled = sync.OnceValue(func() error {
	pool := x509.NewCertPool()
	for root := range bundle.Roots() {
		authority, err := x509.ParseCertificate(root.Certificate)
		if err != nil {
			return fmt.Errorf("an authority of x509roots/fallback: %w", err)
		}
		if root.Constraint == nil {
			pool.AddCert(authority)
		} else {
			pool.AddCertWithConstraint(authority, root.Constraint)
		}
	}
	x509.SetFallbackRoots(pool)
	return nil
})
