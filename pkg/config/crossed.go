package config

import (
	"maps"
	"strings"
)

// crossed finds options that are right alone and wrong together. It speaks only
// of what the text itself sets: what comes from elsewhere gives way silently.
func crossed(o Options, set positions) map[string]*fault {
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
	maps.Copy(faults, o.Export.OTLP.crossed(has))
	if len(faults) == 0 {
		maps.Copy(faults, o.Export.OTLP.unread(has))
	}
	return faults
}

const otlp = "export.otlp."

// crossed finds what the endpoint's scheme contradicts.
func (o OTLP) crossed(has func(key string) bool) map[string]*fault {
	faults := map[string]*fault{}
	if !has(otlp + "endpoint") {
		return faults
	}
	if has(otlp+"insecure") && o.Insecure && strings.HasPrefix(o.Endpoint, "https://") {
		faults[otlp+"insecure"] = wrong("take it out, or write http:// there", "says plain text, but the endpoint says https://")
	}
	_, plain := o.Target()
	for key, file := range map[string]string{"ca": o.CA, "cert": o.Cert, "key": o.Key} {
		if plain && file != "" && has(otlp+key) {
			faults[otlp+key] = wrong("write https:// in the endpoint", "does nothing without TLS")
		}
	}
	return faults
}

// unread finds the TLS files that cannot be used, if the text names any.
func (o OTLP) unread(has func(key string) bool) map[string]*fault {
	faults := map[string]*fault{}
	if has(otlp+"ca") || has(otlp+"cert") || has(otlp+"key") {
		for key, f := range o.files() {
			faults[otlp+key] = f
		}
	}
	return faults
}
