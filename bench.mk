# What cniscope costs, against its budgets: docs/performance.md. Figures of a busy machine
# say little; it ends with an error if one is over budget.

.PHONY: bench
bench: tools ## measure what cniscope costs a node, against its budgets (root; about 7 minutes)
	@go build -o bin/bench ./test/bench
	@bin/bench
