.DEFAULT_GOAL := tools
include tools.mk

.PHONY: test-ordinary

test-ordinary: tools tools-jaeger ## as root: 500 ordinary pods, of which none may look broken (4 minutes)
	CNISCOPE_TEST_PODS=500 go test ./test/e2e -run TestOrdinaryPods -count=1 -timeout 30m -v
