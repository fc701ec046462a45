package judge

import "testing"

func TestBusyAgent(t *testing.T) {
	failing := func(message string) ruling {
		return ruling{op: add(with(seen(plugin("cilium-cni", 0, 90), wrote(message)), exit(1)))}
	}
	table := map[string]ruling{}
	for name, message := range map[string]string{
		"Cilium's agent": `unable to create endpoint: [PUT /endpoint/{id}][429] putEndpointIdTooManyRequests`,
		"HTTP":           `agent answered: HTTP 429`,
		"in words":       `status 500: Too Many Requests`,
		"gRPC":           `rpc error: code = ResourceExhausted desc = busy`,
	} {
		r := failing(message)
		r.cause, r.says, r.remedy, r.report = CauseBusy, `^the agent of plugin cilium-cni rejected the request \(too many requests\); plugin cilium-cni failed \(code 11\): `, `rate-limit`, "cilium/cilium#22023"
		table[name] = r
	}
	for name, message := range map[string]string{
		"control: an id":               `no endpoint 429`,
		"control: another number":      `HTTP 4290`,
		"control: the plugin's limits": `client rate limiter Wait returned an error: context deadline exceeded`,
	} {
		r := failing(message)
		r.cause = CauseFailed
		table[name] = r
	}
	r := ruling{
		op:    add(with(seen(plugin("p", 0, 900), wrote("HTTP 429"), dialled("unix", "/run/a.sock", from(100, 900))), exit(1))),
		cause: CauseBusy, says: `"HTTP 429"$`,
		remedy: `^start fewer pods at once, or raise the agent's limit of requests$`, report: "-",
	}
	table["the wait for that is not repeated"] = r
	rulings(t, table)
}
