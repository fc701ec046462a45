module github.com/cniscope/cniscope/configs/release

go 1.26.6

replace github.com/cniscope/cniscope => ../..

require (
	aead.dev/minisign v0.3.0
	github.com/CycloneDX/cyclonedx-go v0.12.0
	github.com/cniscope/cniscope v0.0.0
	github.com/google/licensecheck v0.3.1
	github.com/google/uuid v1.6.0
	github.com/package-url/packageurl-go v0.1.7
	golang.org/x/mod v0.42.0
)

require (
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

require (
	github.com/opencontainers/go-digest v1.0.0 // indirect
	github.com/opencontainers/image-spec v1.1.1 // indirect
)
