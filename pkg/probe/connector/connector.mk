# The process connector tells only who is in the initial PID and network namespaces: not in CI's.

CONNECTED := TestACallUnderWayIsListedAndRecordedAndSaidToHang|TestSlowCommandsAreFlaggedWithTheirThreshold|TestAFailedAddSaysWhatFailed
CONNECTED := $(CONNECTED)|InTheMiddleOfAnAdd|TestMetricsSayWhatTheTracesSay|TestWithoutTracingAnOperationIsTheRoot
CONNECTED := $(CONNECTED)|TestWhoIsTakenForAPlugin|TestTheRuntimesChildrenAreTakenForPlugins|TestWhoTheOptionNamesRunsPlugins

.PHONY: test-connector

test-connector: ## what the process connector sees of plugins, alone and beside the probe (4 minutes; root, on a machine itself)
	go test ./pkg/probe/notified ./pkg/probe/connector ./pkg/probe/apart -count=1 -v
	go test ./pkg/probe -run 'TestTheConnectorBesideTheProbe|TestAnUnprivilegedContainer' -bench ForeignPrograms -benchtime 4000x -count=1 -v
	CNISCOPE_TEST_SOURCE=connector go test ./test/e2e -count=1 -v -run '$(CONNECTED)'
	CNISCOPE_TEST_SOURCE=connector go test ./test/scenarios -count=1 -v -run "TestReportsAreJudged/(xtables_lock|host-local's_lock|the_API_server)"
