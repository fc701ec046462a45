package trace

import (
	"maps"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/cniscope/cniscope/pkg/attr"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/text"
)

func identity(op *model.Operation) []attribute.KeyValue {
	kvs := nonZero(
		semconv.K8SNamespaceName(op.Pod.Namespace),
		semconv.K8SPodName(op.Pod.Name),
		semconv.K8SPodUID(op.Pod.UID),
		attr.SandboxID(op.ContainerID),
	)
	if op.Sandbox == nil {
		return kvs
	}
	if len(op.Sandbox.IPs) > 0 {
		// Scalars are easier to search.
		kvs = append(kvs, semconv.K8SPodIP(op.Sandbox.IPs[0]))
	}
	if len(op.Sandbox.IPs) > 1 {
		kvs = append(kvs, attr.SecondIP(op.Sandbox.IPs[1]))
	}
	for _, key := range slices.Sorted(maps.Keys(op.Sandbox.Labels)) {
		if !strings.HasPrefix(key, ownLabels) && key != ownType {
			kvs = append(kvs, semconv.K8SPodLabel(key, op.Sandbox.Labels[key]))
		}
	}
	return kvs
}

// ownLabels is the prefix of the runtime's labels among the pod's; ownType lacks it.
const (
	ownLabels = "io.cri-containerd."
	ownType   = "oci_runtime_type"
)

// aboutSandbox describes the sandbox, on the operation, or on its calls if it has no span.
func aboutSandbox(op *model.Operation) (kvs []attribute.KeyValue) {
	kvs = append(kvs, attr.Closed(string(op.Closed)))
	if op.Attempt > 1 {
		kvs = append(kvs, attr.Attempt(op.Attempt))
	}
	if op.Sandbox == nil {
		return kvs
	}
	if op.Kind == model.Setup {
		kvs = append(kvs, attr.SandboxRunning(op.Running))
	}
	return append(kvs, nonZero(attr.RuntimeHandler(op.Sandbox.RuntimeHandler))...)
}

func aboutTime(c *judge.Call) []attribute.KeyValue {
	sums := map[judge.PartKind]time.Duration{}
	commands := 0
	for _, part := range c.Parts {
		sums[part.Confirmed()] += part.Time
		if part.Kind == judge.Commands {
			commands += part.Count
		}
	}
	var kvs []attribute.KeyValue
	for _, part := range judge.Accounts() {
		if d := sums[part.Kind]; part.Always || d > 0 {
			kvs = append(kvs, part.Time(d))
		}
	}
	kvs = append(kvs, attr.Commands(commands))
	kvs = append(kvs, aboutVerdict(c.Verdict)...)
	if len(c.Parts) > 0 {
		kvs = append(kvs,
			attr.BiggestPart(c.Parts[0].String()),
			attr.BiggestPartName(c.Parts[0].What()),
			attr.BiggestPartMS(c.Parts[0].Time))
	}
	slow := nonZero(attr.SlowCommands(c.SlowCommands), attr.SlowAgents(c.SlowAgents), attr.SlowLocks(c.SlowLocks))
	return append(kvs, slow...)
}

func aboutVerdict(v *judge.Verdict) []attribute.KeyValue {
	if v == nil {
		return nil
	}
	return nonZero(attr.Verdict(v.Says), attr.Cause(string(v.Cause)), attr.Remedy(v.Remedy), attr.Report(v.Report))
}

func aboutLoss(op *model.Operation) []attribute.KeyValue {
	if len(op.Partial) == 0 {
		return nil
	}
	return nonZero(
		attr.Partial(true),
		attr.PartialReason(strings.Join(op.Partial, "; ")),
		attr.LostEvents(int(op.Lost)),
		attr.DroppedImages(op.Dropped),
	)
}

func aboutProcess(kvs []attribute.KeyValue, im *model.Image) []attribute.KeyValue {
	kvs = append(kvs,
		semconv.ProcessCommand(im.Name),
		semconv.ProcessExecutableName(im.File[strings.LastIndexByte(im.File, '/')+1:]),
		semconv.ProcessExecutablePath(im.File),
		semconv.ProcessPID(int(im.PID)),
		semconv.ProcessParentPID(int(im.ParentPID)),
		attr.CPUMS(time.Duration(im.CPU)),
		attr.RunDelayMS(time.Duration(im.RunDelay)),
	)
	if len(im.Args) > 0 {
		kvs = append(kvs, semconv.ProcessCommandArgs(im.Args...))
	}
	kvs = append(kvs, nonZero(attr.HiddenArguments(im.Hidden))...)
	if kvs = append(kvs, aboutStack(im.Stack)...); len(im.Stack) == 0 {
		kvs = append(kvs, aboutStack(im.In)...)
	}
	kvs = append(kvs, aboutAttribution(im.Attribution)...)
	if im.By != nil {
		kvs = append(kvs, aboutActor(im.By)...)
	}
	kvs = append(kvs, nonZero(attr.NetNSInode(im.NetNS.Label), attr.NetNSInodeAtExit(im.Switched.Label))...)
	if im.Ended && !im.Replaced && !im.Unseen {
		if im.Signal == "" {
			kvs = append(kvs, semconv.ProcessExitCode(int(im.Code)))
		} else {
			kvs = append(kvs, attr.Signal(im.Signal))
		}
	}
	return append(kvs, nonZero(
		attr.Replaced(im.Replaced),
		attr.Outlived(im.Outlived),
		attr.Unfinished(!im.Ended),
		attr.EndUnseen(im.Unseen),
		attr.InFlightAtStart(im.InFlight),
		attr.Unidentified(im.Unidentified),
		attr.Truncated(im.Truncated),
	)...)
}

func aboutStack(stack []event.Frame) []attribute.KeyValue {
	if len(stack) == 0 {
		return nil
	}
	callers := make([]string, len(stack))
	for i, f := range stack {
		callers[i] = model.Caller(f)
	}
	return nonZero(
		semconv.CodeFunctionName(stack[0].Function),
		semconv.CodeFilePath(stack[0].File),
		semconv.CodeLineNumber(stack[0].Line),
		attr.Callers(callers...),
	)
}

func aboutRun(run *model.Run) []attribute.KeyValue {
	return nonZero(attr.CNICommand(run.Command), attr.CNIPlugin(run.Plugin))
}

// callErrorType returns one of few values. failed is the run that failed, or nil.
func callErrorType(call *model.Call, failed *model.Image) string {
	switch {
	case failed != nil:
		return errorType(failed)
	case len(call.NeverRun) > 0:
		return "never run"
	}
	return "network removed" // although all had succeeded
}

func errorType(im *model.Image) string {
	switch {
	case im.Signal != "":
		return im.Signal
	case im.Code == 0: // invalid output
		return "invalid result"
	}
	return text.ExitCode(im.Code)
}

func aboutActivity(kvs []attribute.KeyValue, im *model.Image) []attribute.KeyValue {
	changes, queries := im.Tallies[model.FactChange], im.Tallies[model.FactQuery]
	tally := func(t model.Tally, count func(int) attribute.KeyValue, took func(time.Duration) attribute.KeyValue) {
		if t.Count > 0 {
			kvs = append(kvs, count(t.Count), took(time.Duration(t.Time)))
		}
	}
	tally(im.Tallies[model.FactLock], attr.Locks, attr.LockWaitMS)
	tally(im.Tallies[model.FactMutex], attr.KernelLocks, attr.KernelLockWaitMS)
	kvs = append(kvs, nonZero(attr.Changes(changes.Count), attr.Queries(queries.Count))...)
	if n := changes.Count + queries.Count; n > 0 {
		kvs = append(kvs, attr.Requests(n),
			attr.RequestMS(time.Duration(changes.Time+queries.Time)))
	}
	tally(im.Tallies[model.FactSetting], attr.Sysctls, attr.SysctlMS)
	tally(im.Tallies[model.FactCall], attr.SystemCalls, attr.SystemCallMS)
	if im.Tallies[model.FactSleep].Count > 0 {
		kvs = append(kvs, attr.SleepMS(together(im.Asleep)))
	}
	if im.Tallies[model.FactPoll].Count > 0 {
		kvs = append(kvs, attr.PollMS(together(im.Polling)))
	}
	connections, exchanges := 0, 0
	for _, c := range model.Each[*model.Connection](im.Facts) {
		if c.Exchange != nil {
			exchanges++
		} else {
			connections++
		}
	}
	kvs = append(kvs, nonZero(
		attr.Connections(connections),
		attr.Exchanges(exchanges),
		attr.NetNSSwitches(im.Switches),
		attr.NetNSInodeEntered(im.Entered.Label),
	)...)
	if im.Run == nil {
		return kvs
	}
	kvs = append(append(kvs, aboutConfiguration(im.Run)...), aboutResult(im.Run)...)
	return append(kvs, aboutError(im.Run)...)
}

func together(all []model.Interval) (sum time.Duration) {
	for _, i := range all {
		sum += time.Duration(i.End - i.Start)
	}
	return sum
}

func aboutConfiguration(run *model.Run) []attribute.KeyValue {
	c := run.Configuration
	if c == nil {
		return nil
	}
	return nonZero(
		attr.CNIVersion(c.CNIVersion),
		attr.ConfiguredNetwork(c.Network),
		attr.ConfiguredType(c.Type),
		attr.ConfiguredIPAM(c.IPAM),
		attr.ConfigurationInvalid(c.Invalid),
	)
}

func aboutResult(run *model.Run) []attribute.KeyValue {
	r := run.Result
	if r == nil {
		return nil
	}
	return nonZero(
		attr.ResultIPs(r.IPs...),
		attr.ResultInterfaces(r.Interfaces...),
		attr.ResultRoutes(r.Routes...),
		attr.ResultVersion(r.CNIVersion),
		attr.ResultInvalid(r.Invalid),
	)
}

func aboutError(run *model.Run) []attribute.KeyValue {
	if run == nil || run.Result == nil {
		return nil
	}
	return nonZero(attr.CNIErrorCode(int(run.Result.Code)), attr.CNIErrorMessage(run.Result.Message))
}

func aboutConcurrency(call *model.Call) (kvs []attribute.KeyValue) {
	kvs = append([]attribute.KeyValue{attr.ConcurrentCalls(call.Concurrent)}, nonZero(attr.SystemCallsSeen(call.Seen))...)
	for _, what := range slices.Sorted(maps.Keys(call.Cut)) {
		kvs = append(kvs, attr.Cut(what, int(call.Cut[what])))
	}
	return kvs
}

func after(end, at int64) attribute.KeyValue {
	return attr.FirstConnectionMS(time.Duration(max(0, at-end)))
}

func ends(local, remote string) []attribute.KeyValue {
	return nonZero(semconv.NetworkLocalAddress(local), semconv.NetworkPeerAddress(remote))
}

func aboutAttribution(a *model.Attribution) []attribute.KeyValue {
	if a == nil {
		return nil
	}
	return append(
		[]attribute.KeyValue{attr.Attribution(string(a.Evidence))},
		nonZero(attr.Periodic(a.Periodic), attr.OtherCalls(len(a.Others)))...)
}

func aboutSetting(set *model.Setting) []attribute.KeyValue {
	return nonZero(
		attr.SysctlKey(set.Key),
		attr.SysctlValue(set.Value),
		attr.Errno(set.Error),
		attr.NetNSInode(set.NetNS.Label),
	)
}

func aboutLock(wait *model.Wait) []attribute.KeyValue {
	kvs := nonZero(attr.LockPath(wait.Path))
	if wait.Kind == event.WaitMutex {
		kvs = nonZero(attr.LockName(wait.Name))
	}
	if wait.Tries > 1 {
		kvs = append(kvs, attr.LockTries(wait.Tries))
	}
	kvs = append(kvs, nonZero(attr.LockPassed(wait.Passed))...)
	if h := wait.Holder; h != nil {
		kvs = append(kvs, nonZero(
			attr.LockHolderName(h.Name),
			attr.LockHolderParent(h.Parent),
			attr.LockHolderPID(int(h.PID)),
		)...)
		if wait.Kind == event.WaitLock {
			kvs = append(kvs,
				attr.LockHolderAgeMS(time.Duration(wait.HolderAge)),
				attr.LockHolderAgeExact(wait.AgeExact))
		}
	}
	return append(kvs, nonZero(attr.Errno(wait.Error))...)
}

func aboutDetection(d *model.Detection) []attribute.KeyValue {
	return nonZero(
		attr.Address(d.Address),
		attr.AddressState(string(d.State)),
		semconv.NetworkInterfaceNameKey.String(d.On),
		attr.NetNSInode(d.NetNS.Label),
	)
}

func members(of string) (said []string) {
	all, _ := baggage.Parse(of)
	for _, m := range all.Members() {
		said = append(said, text.Clean(m.Key()+"="+m.Value(), text.Bound))
	}
	slices.Sort(said)
	return said
}
