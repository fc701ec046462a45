FUZZ_ETL ?= 30s
.PHONY: fuzz-etl
fuzz-etl: ## read recorded traces of Windows (.etl) that are cut off, broken and hostile, for FUZZ_ETL (30s); what is found is kept as by fuzz-explore
	test/fuzz.sh ./pkg/windows/etw/etl FuzzRead $(FUZZ_ETL) .cache/findings
