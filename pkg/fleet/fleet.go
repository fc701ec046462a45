// Package fleet holds the protocol between kubectl-cniscope and the query sidecars: it runs `cniscope-reader ask` in
// the container beside each cniscope (docs/fleet.md).
package fleet

const (
	// Container is the sidecar's container name.
	Container = "reader"
	// Program is the command that exec runs.
	Program = "/cniscope-reader"
)

// Questions of ask.
const (
	Calls      = "calls"      // in progress, as `cniscope ps --format json`
	Operations = "operations" // of the node history, one line each
	Spans      = "spans"      // of one operation, OTLP
	Node       = "node"       // as `cniscope status --format json`
	Doctor     = "doctor"     // as `cniscope doctor --format json`
	Record     = "record"     // a recording that starts now
)

// Formats of ask.
const (
	JSON = "json"
	// Protobuf is an encoded TracesData.
	Protobuf = "protobuf"
)

// Exit codes of ask. Standard error has one line with the reason.
const (
	Answered = 0
	// NoAnswer means that cniscope does not run, or has another version.
	NoAnswer = 1
	// Misused means wrong arguments.
	Misused = 2
	// 3, 4 and 5 were those of readers before 0.3.0, which wanted a token.

	// NotRemembered means that the node history does not have the spans.
	NotRemembered = 6
	// Busy means too many concurrent questions; retry in a second.
	Busy = 7
)
