# What a release consists of, in dist/VERSION: docs/release.md.

.PHONY: release

DIST ?= dist
# The builder is a module of its own: what it needs is nothing that the program needs.
release: ## build a release, VERSION=v0.2.0, into dist/v0.2.0 (DIST=another folder; DRAFT=1: to try it, from changed files)
	@cd configs/release && GOFLAGS=-buildvcs=false go build -trimpath -o ../../bin/release . && cd ../.. && \
		bin/release -version '$(VERSION)' -dist '$(DIST)' $(if $(DRAFT),-draft)
