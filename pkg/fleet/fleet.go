// Package fleet is the protocol between kubectl-cniscope and `cniscope-reader ask` in the query sidecars
// (docs/fleet.md).
package fleet

const (
	// Container is the sidecar's container name.
	Container = "reader"
	// Program is the command that exec runs.
	Program = "/cniscope-reader"
)

// Questions of ask.
const (
	Calls      = "calls"      // as `cniscope ps -o json`
	Operations = "operations" // node history, one line each
	Spans      = "spans"      // OTLP of one operation
	Node       = "node"       // as `cniscope status -o json`
	Doctor     = "doctor"     // as `cniscope doctor -o json`
	Record     = "record"
)

// Formats of ask.
const (
	JSON = "json"
	// Protobuf is an encoded TracesData.
	Protobuf = "protobuf"
)

// Exit codes of ask, which prints the reason on standard error.
const (
	Answered = 0
	// NoAnswer means that cniscope does not run or differs in version.
	NoAnswer = 1
	// Misused means wrong arguments.
	Misused = 2
	// NotRemembered means that the node history lacks the spans.
	NotRemembered = 6
	// Busy means too many questions; retry in a second.
	Busy = 7
)
