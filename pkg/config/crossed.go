package config

import "strings"

// crossed finds options that are right alone and wrong together. It speaks only
// of what the text itself sets: what comes from elsewhere gives way silently.
func crossed(o Options, set positions) map[string]*fault {
	const otlp = "export.otlp."
	faults := map[string]*fault{}
	has := func(key string) bool { _, ok := set[key]; return ok }

	if (has("limits.settle") || has("limits.max_hold")) && o.Limits.MaxHold <= o.Limits.Settle {
		faults["limits.max_hold"] = wrong("make it longer than limits.settle ("+short(o.Limits.Settle)+")", "%s is too short", short(o.Limits.MaxHold))
	}

	if has("probe.rootless") && o.Probe.Rootless && len(o.Probe.Callers) == 0 {
		faults["probe.rootless"] = wrong("name the runtime's program in probe.callers", "does nothing alone")
	}

	if key, f := o.relayLoop(has); f != nil {
		faults[key] = f
	}

	e := o.Export.OTLP
	if has(otlp+"insecure") && has(otlp+"endpoint") && e.Insecure && strings.HasPrefix(e.Endpoint, "https://") {
		faults[otlp+"insecure"] = wrong("take it out, or write http:// there", "says plain text, but the endpoint says https://")
	}
	_, plain := e.Target()
	for key, file := range map[string]string{"ca": e.CA, "cert": e.Cert, "key": e.Key} {
		if file != "" && has(otlp+key) && has(otlp+"endpoint") && plain {
			faults[otlp+key] = wrong("write https:// in the endpoint", "does nothing without TLS")
		}
	}
	if len(faults) == 0 && (has(otlp+"ca") || has(otlp+"cert") || has(otlp+"key")) {
		for key, f := range e.files() {
			faults[otlp+key] = f
		}
	}
	return faults
}
