module github.com/cniscope/cniscope/configs/release

go 1.26.6

replace github.com/cniscope/cniscope => ../..

require (
	github.com/cniscope/cniscope v0.0.0
	golang.org/x/mod v0.42.0
)

require (
	github.com/opencontainers/go-digest v1.0.0 // indirect
	github.com/opencontainers/image-spec v1.1.1 // indirect
)
