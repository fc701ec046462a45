# The process connector tells only who is in the initial PID and network namespaces: not in CI's.

CONNECTED := TestACallUnderWayIsListedAndRecordedAndSaidToHang|TestAFailedAddSaysWhatFailed
CONNECTED := $(CONNECTED)|InTheMiddleOfAnAdd|TestMetricsSayWhatTheTracesSay
CONNECTED := $(CONNECTED)|TestWhoIsTakenForAPlugin|TestWhoTheOptionNamesRunsPlugins

.PHONY: test-connector

test-connector: tools tools-jaeger ## what the process connector sees of plugins, alone and beside the probe (4 minutes; root, on a machine itself)
	@test "$$(readlink /proc/self/ns/pid)" = "pid:[4026531836]" || { echo "not in a PID namespace: the kernel tells nothing there"; exit 1; }
	$(TESTS) -count=1 ./pkg/probe/proctracker ./pkg/probe/connector ./pkg/probe/subprocess
	go test ./pkg/probe -run 'TestTheConnectorBesideTheProbe|TestAnUnprivilegedContainer' -bench ForeignPrograms -benchtime 4000x -count=1 -v
	CNISCOPE_TEST_SOURCE=connector $(TESTS) -count=1 -timeout 30m ./test/e2e -run '$(CONNECTED)'
	CNISCOPE_TEST_SOURCE=connector $(TESTS) -count=1 -timeout 30m ./test/scenarios -run "TestReportsAreJudged/(xtables_lock|host-local's_lock|the_API_server)"
