# More real CNIs beside cniscope: Multus, Flannel, Calico. The node is that of test-cilium.

.PHONY: tools-cnis test-cnis

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
	CNISCOPE_CILIUM=1 go test ./test/cilium -run '$(CNIS)' -count=1 -timeout 30m -v
