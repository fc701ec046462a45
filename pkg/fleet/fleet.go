// Package fleet is what the programs that ask many nodes agree on: kubectl-cniscope runs
// `cniscope-reader ask` in the container beside each cniscope, and writes a token to its standard input.
// docs/fleet.md describes it.
package fleet

const (
	// Audience is what a token has to be for. The API server itself does not take such a token, so it opens
	// nothing but this.
	Audience = "cniscope"
	// Container is the name of the reader's container, as Kubernetes' exec wants it.
	Container = "reader"
	// Program is what exec runs in it.
	Program = "/cniscope-reader"
	// OperatorAnnotation of a pod of cniscope names the ServiceAccount in the pod's namespace whose tokens
	// see everything.
	OperatorAnnotation = "cniscope.dev/operator"
	// MaxToken bounds a token, in bytes. Those of API servers are some 1 KB.
	MaxToken = 16 << 10
)

// What ask can be asked.
const (
	Calls      = "calls"      // under way, as `cniscope ps --format json`
	Operations = "operations" // remembered, one line each
	Spans      = "spans"      // of one operation, OTLP
	Node       = "node"       // as `cniscope status --format json`
	Doctor     = "doctor"     // as `cniscope doctor --format json`
	Record     = "record"     // a recording of what happens from now on
)

// The formats of ask.
const (
	JSON = "json"
	// Protobuf is for spans: an encoded TracesData.
	Protobuf = "protobuf"
)

// The exit codes of ask. The reason is one line on standard error.
const (
	Answered = 0
	// NoAnswer: no cniscope answers on the node, or it is of another version.
	NoAnswer = 1
	// Misused: the arguments are wrong.
	Misused = 2
	// NoToken: there was no token, or it is not one that counts: expired, for another audience, of no ServiceAccount.
	NoToken = 3
	// NotAllowed: the token counts, and its owner may not see this.
	NotAllowed = 4
	// Unchecked: the API server could not be asked whose the token is.
	Unchecked = 5
	// NotRemembered: the node does not remember the spans that were asked for.
	NotRemembered = 6
	// Busy: too many ask this node at once; try again in a second.
	Busy = 7
)
