package config

import "strings"

// renamed maps the former name of an option, or of a flag with its dashes, to its present
// name. Using a former name is an error that names the present one.
var renamed = map[string]string{
	"agent":                "probe.agents",
	"containerd.address":   "runtime.socket",
	"limits.spans":         "limits.images",
	"run.dir":              "state.dir",
	"sampling.annotations": "sampling.annotation_namespaces",
	"--patience":           "--answer-timeout",
}

// Renamed returns the present name of what was once called former; ok is false if nothing was.
func Renamed(former string) (now string, ok bool) {
	now, ok = renamed[former]
	return now, ok
}

// formerName describes the use of a former name, and how to write what took its place.
func formerName(now string) *fault {
	section, name := splitKey(now)
	remedy := "write " + name + " = … in [" + section + "]"
	switch now {
	case "probe.agents":
		remedy = `write agents = ["NAME", …] in [probe]`
	case "limits.images":
		remedy += "; what a plugin waits for and changes is bounded by facts"
	}
	return wrong(remedy, "is now called %s", now)
}

// splitKey splits an option's name into its section and the name within it.
func splitKey(key string) (section, name string) {
	dot := strings.LastIndexByte(key, '.')
	return key[:max(0, dot)], key[dot+1:]
}
