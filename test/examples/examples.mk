# What examples/ and docs/ have users type, against the real backends.

.PHONY: tools-tempo test-queries

$(eval $(call part,tempo,about 4 minutes,0,,))

tools-tempo: $(built/tempo) ## build Tempo, for test-queries

test-queries: tools-report tools-jaeger tools-tempo ## try the queries of docs/traces.md in a real Jaeger and a real Tempo, on recorded pods
	$(TESTS) -count=1 -timeout 10m ./test/examples -run TestQueries
