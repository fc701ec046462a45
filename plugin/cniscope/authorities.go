package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"sync"

	"golang.org/x/crypto/x509roots/fallback/bundle"

	"github.com/cniscope/cniscope/pkg/config"
)

// tlsOf returns how the endpoint is spoken to, nil for plain text. Without an authority of its own those of the system are
// believed, and where it has none, as in the image, Mozilla's.
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

// bundled has crypto/x509 know who signs public endpoints, from the first endpoint on that has to show it: x509roots/fallback would
// do so at every start, and most endpoints are in plain text. It may be done once.
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
