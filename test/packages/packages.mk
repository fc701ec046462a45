# The deb and rpm packages, installed in a fresh Debian whose systemd is the real one.

.PHONY: test-packages debian-packages

PACKAGES_ROOT := .cache/packages
debian-packages:
	@$(TOOLS)/debian.sh debootstrap rpm lintian rpmlint systemd

test-packages: tools tools-older debian-packages ## install, upgrade, remove and purge the deb and rpm in a fresh Debian: a pod is traced, edits stay, never two, nothing is left (root)
	@test/packages/root.sh bookworm $(PACKAGES_ROOT)/bookworm
	@cd configs/release && GOFLAGS=-buildvcs=false go build -trimpath -o ../../bin/release .
	@for v in v0.2.0 v0.2.1; do bin/release -version $$v -dist $(PACKAGES_ROOT)/dist -draft -packages || exit; done
	$(TESTS) -p 1 -count=1 -timeout 30m ./test/packages
