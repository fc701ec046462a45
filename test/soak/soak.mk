# Pods come and go while everything around them dies: docs/contributing/reliability.md. No other rig may run meanwhile.

SOAK_PODS ?= 10000
SOAK_SEED ?= 1
SOAK_DIR  ?= $(CURDIR)/.cache/soak
SOAK      := go test ./test/soak -count=1 -v

.PHONY: soak
soak: tools ## SOAK_PODS (10000) pods come and go while a schedule from SOAK_SEED (1) kills, stops, starves and fills; goes on where it was interrupted; SOAK_ROUND=N: that round alone (root; hours)
	CNISCOPE_SOAK_PODS=$(SOAK_PODS) CNISCOPE_SOAK_SEED=$(SOAK_SEED) CNISCOPE_SOAK_ROUND=$(SOAK_ROUND) CNISCOPE_SOAK_DIR=$(SOAK_DIR) $(SOAK) -run '^TestSoak$$' -timeout 24h

.PHONY: soak-report
soak-report: ## what the soak of SOAK_PODS and SOAK_SEED has found so far, from its diary
	CNISCOPE_SOAK_DIARY=$(SOAK_DIR)/diary-$(SOAK_PODS)-$(SOAK_SEED).jsonl $(SOAK) -run '^TestReport$$'

.PHONY: test-soak
test-soak: tools ## a soak of 60 pods and some 10 faults (root; 2 minutes)
	$(SOAK) -timeout 20m
