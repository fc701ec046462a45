# What examples/ and docs/ have users type, against the real backends.

.PHONY: tools-tempo tools-nodeproblemdetector test-npd test-queries test-alerts test-dashboard

$(eval $(call part,tempo,about 4 minutes,0,,))
$(eval $(call part,node-problem-detector,about 2 minutes,0,-tags "disable_system_log_monitor disable_system_stats_monitor disable_stackdriver_exporter",))

tools-tempo: $(built/tempo) ## build Tempo, for test-queries

test-queries: tools-jaeger tools-tempo ## try the queries of docs/traces.md in a real Jaeger and a real Tempo, on recorded pods
	$(TESTS) -count=1 -timeout 10m ./test/examples -run TestQueries

test-alerts: tools-promtool ## the alert rules over simulated fleets of 500 nodes: one trouble is one alert, ordinary noise is none
	CNISCOPE_ALERTS=1 $(TESTS) -count=1 -timeout 20m ./test/examples -run 'Alert|Burns'

test-dashboard: tools tools-promtool ## a real Prometheus scrapes a node whose pods are slow and fail: every query of the dashboard returns data, exemplars lead to traces (root)
	CNISCOPE_DASHBOARD=1 $(TESTS) -count=1 -timeout 15m ./test/examples -run TestTheDashboardOfANode

tools-nodeproblemdetector: $(built/node-problem-detector) ## build node-problem-detector, for test-npd

test-npd: tools-nodeproblemdetector ## the real node-problem-detector sets a node's condition from what cniscope doctor prints
	$(TESTS) -count=1 -timeout 10m ./test/examples -run NodeProblemDetector
