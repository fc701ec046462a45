# The container image.

IMAGE ?= ghcr.io/cniscope/cniscope:$(or $(VERSION),devel)

.PHONY: binaries image

binaries: ## build bin/linux-ARCH/cniscope, static, for the image
	@set -e; for arch in amd64 arm64; do \
		echo "building bin/linux-$$arch/cniscope"; \
		CGO_ENABLED=0 GOOS=linux GOARCH=$$arch go build -trimpath -ldflags '$(LDFLAGS)' -o bin/linux-$$arch/cniscope ./plugin/cniscope; \
	done

image: binaries ## build the container image as bin/cniscope-image.tar (an OCI layout, amd64 and arm64; no Docker)
	go run ./configs/image/build -name $(IMAGE) -o bin/cniscope-image.tar
