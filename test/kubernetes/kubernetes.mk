# The test on a real node: kube-apiserver, kubelet, etcd.

.PHONY: tools-kubernetes test-kubernetes debian-etcd

# The version is linked in as in a release of Kubernetes: helm asks for it.
KUBERNETES := $(shell awk '$$2 == "k8s.io/kubernetes" {print $$3}' $(TOOLS)/kubernetes/go.mod)
$(eval $(call part,kubernetes,about 6 minutes,0,-ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$(KUBERNETES)",))

tools-kubernetes: debian-etcd $(built/kubernetes) ## build kubelet, kube-apiserver, the controllers and kube-proxy, for test-kubernetes, test-chart and test-cilium

debian-etcd:
	@$(TOOLS)/debian.sh etcd-server

test-kubernetes: tools tools-jaeger tools-kubernetes tools-helm ## run cniscope as the DaemonSet's pod on a real node (root)
	go test ./test/kubernetes -count=1 -timeout 40m
