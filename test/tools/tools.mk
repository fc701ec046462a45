# The real parts that tests and the demo run, pinned as Go modules: one folder of
# test/tools each, built into test/tools/bin. A part is built again only when its
# go.mod, its go.sum or its flags change.

TOOLS     := test/tools
TOOLS_BIN := $(TOOLS)/bin

# part NAME, TIME TO SAY, CGO, FLAGS, FOLDER BELOW bin
define part
built/$(1) := $(TOOLS_BIN)/.built/$(1)-$(shell { cat $(TOOLS)/$(1)/go.mod $(TOOLS)/$(1)/go.sum; echo '$(3) $(4)'; } | sha256sum | cut -c1-16)
$$(built/$(1)):
	@echo "building $(1), $(2) the first time"
	@mkdir -p $(TOOLS_BIN)/.built $(TOOLS_BIN)/$(5)
	@cd $(TOOLS)/$(1) && CGO_ENABLED=$(3) GOFLAGS= GOWORK=off go build -buildvcs=false -trimpath -ldflags '-s -w' $(4) -o ../bin/$(5) tool && echo "built $(1) in $$$${SECONDS}s"
	@rm -f $(TOOLS_BIN)/.built/$(1)-????????????????
	@touch $$@
endef

$(eval $(call part,containerd,about 90 seconds,0,-tags "no_btrfs no_devmapper no_zfs",))
$(eval $(call part,containerd-2.3,about 90 seconds,0,-tags "no_btrfs no_devmapper no_zfs",containerd-2.3/))
$(eval $(call part,containerd-1.7,about 90 seconds,0,-tags "no_btrfs no_devmapper no_zfs",containerd-1.7/))
$(eval $(call part,runc,about 20 seconds,1,-tags seccomp,))
$(eval $(call part,plugins,about 10 seconds,0,,cni/))
$(eval $(call part,jaeger,about 4 minutes,0,,))
$(eval $(call part,inspektor-gadget,about 4 minutes,0,,))
$(eval $(call part,golangci-lint,about 2 minutes,0,,))
$(eval $(call part,gofumpt,a few seconds,0,,))
$(eval $(call part,sbom-utility,about 20 seconds,0,,))
$(eval $(call part,actionlint,a few seconds,0,,))

.PHONY: parts tools tools-older tools-jaeger tools-inspektor-gadget tools-promtool tools-lint tools-html tools-release debian-run debian-test debian-bench debian-generate debian-release

tools: debian-run $(built/containerd) $(built/runc) $(built/plugins) $(TOOLS_BIN)/pause ## build containerd, runc and the CNI plugins, for the demo and the tests

tools-older: $(built/containerd-2.3) $(built/containerd-1.7) ## build the containerd versions before 2.4, for the tests

tools-jaeger: $(built/jaeger) ## build Jaeger, for the tests

tools-inspektor-gadget: $(built/inspektor-gadget) ## build ig, which `make bench` compares with

tools-promtool: $(TOOLS_BIN)/.built/prometheus-debian ## fetch promtool and Prometheus, which check the alert rules and the dashboard

tools-lint: $(built/golangci-lint) $(built/gofumpt) ## build the linters

tools-html: $(TOOLS_BIN)/axe/node_modules/.package-lock.json ## install Chromium and axe-core, which check the page of show --html
	@$(TOOLS)/debian.sh chromium fonts-dejavu-core

tools-release: debian-release $(built/sbom-utility) $(built/actionlint) ## install what verifies a release: minisign, CycloneDX's validator, actionlint

parts: tools tools-older tools-jaeger tools-promtool tools-lint tools-html tools-helm debian-test debian-generate ## all that .ci/run needs of that; `make -j2 parts` builds them side by side

$(TOOLS_BIN)/.built/prometheus-debian: $(TOOLS)/promtool.sh
	@echo "fetching promtool and Prometheus, 20 MB"
	@mkdir -p $(@D)
	@$(TOOLS)/promtool.sh $(TOOLS_BIN)
	@touch $@

# axe-core is one file of JavaScript, and comes from npm.
$(TOOLS_BIN)/axe/node_modules/.package-lock.json: $(TOOLS)/axe/package.json $(TOOLS)/axe/package-lock.json
	@command -v npm >/dev/null || $(TOOLS)/debian.sh npm
	@mkdir -p $(TOOLS_BIN)/axe
	@cp $^ $(TOOLS_BIN)/axe/
	@cd $(TOOLS_BIN)/axe && npm ci --ignore-scripts --no-audit --no-fund --silent

$(built/runc): | debian-run

$(TOOLS_BIN)/pause: $(wildcard test/rig/pause/*.go)
	@mkdir -p $(TOOLS_BIN)
	@CGO_ENABLED=0 go build -buildvcs=false -trimpath -ldflags '-s -w' -o $@ ./test/rig/pause

# What Go modules cannot give comes from Debian: missing packages are listed, then installed.
debian-run:
	@$(TOOLS)/debian.sh iproute2 iptables nftables gcc libc6-dev pkg-config libseccomp-dev

debian-test:
	@$(TOOLS)/debian.sh bpftrace systemd dnsmasq-base

debian-bench:
	@$(TOOLS)/debian.sh bpftrace strace

debian-generate:
	@$(TOOLS)/debian.sh clang llvm libbpf-dev bpftool

debian-release:
	@$(TOOLS)/debian.sh minisign
