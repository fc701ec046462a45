# What a release consists of, in dist/VERSION: docs/contributing/release.md.

.PHONY: release test-release

DIST ?= dist
# The builder is a module of its own: what it needs is nothing that the program needs. VERSION
# is in its environment, for make exports what it was called with.
release: ## build a release, VERSION=v0.3.0, into dist/v0.3.0 (DIST=another folder; DRAFT=1: to try it, from changed files)
	@cd configs/release && env -u GOOS -u GOARCH -u GOEXPERIMENT CGO_ENABLED=0 GOFLAGS=-buildvcs=false GOWORK=off go build -trimpath -o ../../bin/release .
	@bin/release -version "$$VERSION" -dist '$(DIST)' $(if $(DRAFT),-draft) $(if $(PLATFORMS),-platforms $(PLATFORMS))

test-release: tools-release ## build a release twice, under different circumstances: the same bytes, verified by Debian's minisign and CycloneDX's validator (CACHE=cold: compile it twice, too)
	@cd configs/release && GOWORK=off go vet ./... && GOWORK=off go test ./...
	CNISCOPE_RELEASE_CACHE=$(CACHE) go test ./test/release -count=1 -timeout 30m -v
