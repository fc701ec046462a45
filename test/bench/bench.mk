# What cniscope costs, against its budgets: docs/performance.md. Figures of a busy machine
# say little; it ends with an error if one is over budget.

.PHONY: bench
bench: tools tools-inspektor-gadget debian-bench ## measure what cniscope costs a node, against its budgets (root; about 15 minutes; BENCH_PODS=12 to try)
	@go build -o bin/bench ./test/bench
	@bin/bench

.PHONY: bench-against
bench-against: ## compare the Go benchmarks with those of revision BASE, in turns (no root; BASE=v0.2.0, ROUNDS=10)
	@test/bench/against.sh "$(BASE)" $(ROUNDS)
