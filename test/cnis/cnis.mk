# Real CNIs beside cniscope: Cilium with kube-proxy; Multus, Flannel, Calico.

.PHONY: tools-cilium test-cilium debian-cilium tools-cnis test-cnis

##### Cilium

# The agent compiles bpf/ when it runs; the API server is given its definitions of objects.
# Go files among them would be packages of ours.
CILIUM_BIN := $(TOOLS_BIN)/cilium

$(eval $(call part,cilium,about 15 minutes,0,-tags osusergo -ldflags "-s -w -X github.com/cilium/cilium/pkg/version.ciliumVersion=1.19.4",cilium/))

$(CILIUM_BIN)/cilium-agent: $(built/cilium)
	@sources=$$(cd $(TOOLS)/cilium && go list -m -f '{{.Dir}}' github.com/cilium/cilium) && rm -rf $(CILIUM_BIN)/bpf $(CILIUM_BIN)/crds && \
		cp -r $$sources/bpf $(CILIUM_BIN)/bpf && cp -r $$sources/pkg/k8s/apis/cilium.io/client/crds $(CILIUM_BIN)/crds && chmod -R u+w $(CILIUM_BIN) && find $(CILIUM_BIN) -name '*.go' -delete
	@ln -f $(CILIUM_BIN)/daemon $@ && touch $@

$(eval $(call part,coredns,about 4 minutes,0,,))

tools-cilium: debian-cilium tools-kubernetes $(built/coredns) $(CILIUM_BIN)/cilium-agent ## build Cilium, kube-proxy, kubeadm and CoreDNS, for test-cilium

debian-cilium:
	@$(TOOLS)/debian.sh clang-19 ipset

CILIUM ?= Installation|Proxies|Seed|Bursts|Limited|Faults|Moments|Points|Memory
test-cilium: tools tools-cilium ## run cniscope beside the real Cilium and kube-proxy: proxies, cold bursts, agents that are stopped, killed, hung, limited; and install a cluster by examples/kubeadm with the real kubeadm, kubelet, etcd and CoreDNS (root; CILIUM=NAME: one of its tests)
	CNISCOPE_CNIS=1 go test ./test/cnis -run '$(CILIUM)' -count=1 -timeout 60m -v

##### the others

$(eval $(call part,multus,about 4 minutes,0,,multus/))
$(eval $(call part,flannel,about 4 minutes,1,,flannel/))
$(eval $(call part,flannel-cni,a few seconds,0,,flannel-cni/))
$(eval $(call part,calico,about 3 minutes,0,,calico/))

# The API server is given Calico's definitions of objects.
$(TOOLS_BIN)/calico/crds: $(built/calico)
	@sources=$$(cd $(TOOLS)/calico && go list -m -f '{{.Dir}}' github.com/projectcalico/calico) && rm -rf $@ && \
		cp -r $$sources/libcalico-go/config/crd $@ && chmod -R u+w $@ && touch $@

tools-cnis: tools-kubernetes $(built/multus) $(built/flannel) $(built/flannel-cni) $(TOOLS_BIN)/calico/crds ## build Multus, Flannel and Calico, for test-cnis

CNIS ?= Multus|Flannel|Calico
test-cnis: tools tools-cnis ## run cniscope beside the real Multus (thick), Flannel and Calico, with two seconds lost behind each (root; CNIS=NAME: one of them)
	CNISCOPE_CNIS=1 go test ./test/cnis -run '$(CNIS)' -count=1 -timeout 30m -v
