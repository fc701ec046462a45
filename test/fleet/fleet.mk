# kubectl cniscope and 500 simulated nodes behind a real kube-apiserver.

.PHONY: test-fleet

test-fleet: tools-kubernetes ## ask 500 simulated nodes behind a real API server, 20 of them dead: all within 10 s, with bounded memory, and what is missing is named (a minute)
	go test ./test/fleet -count=1 -timeout 10m -v
