# The container image, and the test on a real node: kube-apiserver, kubelet, etcd.

IMAGE ?= ghcr.io/cniscope/cniscope:$(or $(VERSION),devel)

.PHONY: binaries image tools-kubernetes test-kubernetes debian-etcd

binaries: ## build bin/linux-ARCH/cniscope, static, for the image
	@set -e; for arch in amd64 arm64; do \
		echo "building bin/linux-$$arch/cniscope"; \
		CGO_ENABLED=0 GOOS=linux GOARCH=$$arch go build -trimpath -ldflags '$(LDFLAGS)' -o bin/linux-$$arch/cniscope ./plugin/cniscope; \
	done

image: binaries ## build the container image as bin/cniscope-image.tar (an OCI layout, amd64 and arm64; no Docker)
	go run ./test/image -name $(IMAGE) -o bin/cniscope-image.tar

$(eval $(call part,kubernetes,about 5 minutes,0,,))

tools-kubernetes: debian-etcd $(built/kubernetes) ## build kubelet, kube-apiserver and kube-proxy, for test-kubernetes and test-cilium

debian-etcd:
	@$(TOOLS)/debian.sh etcd-server

test-kubernetes: tools tools-jaeger tools-kubernetes ## run cniscope as the DaemonSet's pod on a real node (root)
	go test ./test/kubernetes -count=1 -timeout 40m
