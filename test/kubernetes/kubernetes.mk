# The test on a real node: kube-apiserver, kubelet, etcd.

.PHONY: tools-kubernetes test-kubernetes debian-etcd

$(eval $(call part,kubernetes,about 5 minutes,0,,))

tools-kubernetes: debian-etcd $(built/kubernetes) ## build kubelet, kube-apiserver and kube-proxy, for test-kubernetes and test-cilium

debian-etcd:
	@$(TOOLS)/debian.sh etcd-server

test-kubernetes: tools tools-jaeger tools-kubernetes ## run cniscope as the DaemonSet's pod on a real node (root)
	go test ./test/kubernetes -count=1 -timeout 40m
