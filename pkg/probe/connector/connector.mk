# The process connector tells only who is in the initial PID and network namespaces: not in CI's.

.PHONY: test-connector

test-connector: ## what the process connector sees of plugins, alone and beside the probe (1 minute; root, on a machine itself)
	go test ./pkg/probe/notified ./pkg/probe/connector ./pkg/probe/apart -count=1 -v
	go test ./pkg/probe -run TestTheConnectorBesideTheProbe -bench ForeignPrograms -benchtime 2000x -count=1 -v
	CNISCOPE_TEST_SOURCE=connector go test ./test/e2e -count=1 -v \
		-run 'TestACallUnderWayIsListedAndRecordedAndSaidToHang|TestSlowCommandsAreFlaggedWithTheirThreshold|TestAFailedAddSaysWhatFailed'
