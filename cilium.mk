# Cilium and kube-proxy, the real ones, beside cniscope: what test-cilium needs besides the rig.

.PHONY: tools-cilium test-cilium debian-cilium

# The agent compiles bpf/ when it runs; the API server is given its definitions of objects.
CILIUM_BIN := $(TOOLS_BIN)/cilium

$(eval $(call part,cilium,about 15 minutes,0,-tags osusergo -ldflags "-s -w -X github.com/cilium/cilium/pkg/version.ciliumVersion=1.19.4",cilium/))

$(CILIUM_BIN)/cilium-agent: $(built/cilium)
	@sources=$$(cd $(TOOLS)/cilium && go list -m -f '{{.Dir}}' github.com/cilium/cilium) && rm -rf $(CILIUM_BIN)/bpf $(CILIUM_BIN)/crds && \
		cp -r $$sources/bpf $(CILIUM_BIN)/bpf && cp -r $$sources/pkg/k8s/apis/cilium.io/client/crds $(CILIUM_BIN)/crds && chmod -R u+w $(CILIUM_BIN)
	@ln -f $(CILIUM_BIN)/daemon $@ && touch $@

tools-cilium: debian-cilium tools-kubernetes $(CILIUM_BIN)/cilium-agent ## build Cilium and kube-proxy, for test-cilium

debian-cilium:
	@$(TOOLS)/debian.sh clang-19 ipset

CILIUM ?= .
test-cilium: tools tools-cilium ## run cniscope beside the real Cilium and kube-proxy: proxies, cold bursts, agents that are stopped, killed, hung, limited (root; CILIUM=NAME: one of its tests)
	CNISCOPE_CILIUM=1 go test ./test/cilium -run '$(CILIUM)' -count=1 -timeout 60m -v
