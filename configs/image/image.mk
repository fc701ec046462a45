# The container image.

IMAGE ?= ghcr.io/cniscope/cniscope:$(or $(VERSION),devel)

.PHONY: binaries image

binaries: ## build cniscope and cniscope-reader, static, in bin/linux-ARCH, for the image
	@set -e; for arch in amd64 arm64; do \
		echo "building bin/linux-$$arch/cniscope and cniscope-reader"; \
		CGO_ENABLED=0 GOOS=linux GOARCH=$$arch go build -trimpath -ldflags '$(LDFLAGS)' -o bin/linux-$$arch/ ./plugin/cniscope ./plugin/cniscope-reader; \
	done

image: binaries ## build the container image as bin/cniscope-image.tar (an OCI layout, amd64 and arm64; no Docker)
	go run ./configs/image/build -name $(IMAGE) -o bin/cniscope-image.tar
