# The test on a real node: kube-apiserver, kubelet, etcd.

.PHONY: tools-kubernetes test-kubernetes test-install debian-etcd

# The version is linked in as in a release of Kubernetes: helm asks for it.
KUBERNETES := $(shell awk '$$2 == "k8s.io/kubernetes" {print $$3}' $(TOOLS)/kubernetes/go.mod)
$(eval $(call part,kubernetes,about 6 minutes,0,-ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$(KUBERNETES)",))

tools-kubernetes: debian-etcd $(built/kubernetes) ## build kubelet, kube-apiserver, the controllers and kube-proxy, for test-kubernetes, test-chart and test-cilium

debian-etcd:
	@$(TOOLS)/debian.sh etcd-server

test-kubernetes: tools tools-jaeger tools-kubernetes tools-helm ## run cniscope as the DaemonSet's pod on a real node (root)
	go test ./test/kubernetes -count=1 -timeout 40m

# What `make release` builds, as it is: test-packages and test-kubernetes take it from CNISCOPE_RELEASE.
RELEASE   := $(or $(VERSION),$(shell sed -n 's/^## \[\([0-9].*\)\].*/v\1/p' CHANGELOG.md | head -n 1))
INSTALLED := CNISCOPE_RELEASE=$(CURDIR)/.cache/release/$(RELEASE)
INSTALLS  := ^(TestChartManifestAndImageFit|TestChartLives|TestOneTraceFromKubeletToIptables|TestReader)$$
test-install: tools tools-jaeger tools-kubernetes tools-helm debian-packages ## install what `make release` builds: the deb by apt on a clean root; chart and manifest on an API server, kubelet and containerd, until Jaeger has the trace and kubectl cniscope answers (root)
	@VERSION=$(RELEASE) $(SUB) release DIST=.cache/release DRAFT=1 PLATFORMS=linux/$$(go env GOARCH)
	@test/packages/root.sh bookworm $(PACKAGES_ROOT)/bookworm
	@test/steps.sh 'deb: $(INSTALLED) go test ./test/packages -run TestTheReleaseIsInstalledByApt -count=1' \
		'upgrade and rollback: $(SUB) test-upgrade' \
		'chart, manifest and plugin: $(INSTALLED) test/own.sh go test ./test/kubernetes -run "$(INSTALLS)" -count=1 -timeout 30m'
