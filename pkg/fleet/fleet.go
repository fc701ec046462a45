// Package fleet holds the protocol between kubectl-cniscope and the query sidecars: it runs `cniscope-reader ask` in
// the container beside each cniscope and writes a token to its standard input (docs/fleet.md).
package fleet

const (
	// Audience is the required audience of tokens. The API server rejects such tokens, so they give no other
	// access.
	Audience = "cniscope"
	// Container is the sidecar's container name.
	Container = "reader"
	// Program is the command that exec runs.
	Program = "/cniscope-reader"
	// OperatorAnnotation on cniscope's pod names the ServiceAccount, in its namespace, that sees everything.
	OperatorAnnotation = "cniscope.dev/operator"
	// MaxToken bounds a token in bytes; usual ones have about 1 KB.
	MaxToken = 16 << 10
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
	// NoToken means no token, or an invalid one: expired, another audience, no ServiceAccount.
	NoToken = 3
	// NotAllowed means that the token's owner may not see this.
	NotAllowed = 4
	// Unchecked means that the API server could not check the token.
	Unchecked = 5
	// NotRemembered means that the node history does not have the spans.
	NotRemembered = 6
	// Busy means too many concurrent questions; retry in a second.
	Busy = 7
)
