package judge

import (
	"fmt"
	"regexp"
	"strings"
)

func busyAgent(e *evidence) *Verdict {
	r := result(e.Failed)
	if r == nil || !tooMany(r.Message) {
		return nil
	}
	v := Verdict{
		Cause: CauseBusy,
		Says: fmt.Sprintf("the agent of plugin %s rejected the request (too many requests); %s",
			e.Failed.Run.Plugin, e.Failure),
		Remedy: CauseBusy.remedy(),
	}.beside(e.Failed.Run.Plugin)
	return &v
}

// tooMany recognizes HTTP 429 (RFC 6585, 4) and gRPC 8 as plugins quote them.
func tooMany(message string) bool {
	said := strings.ToLower(message)
	if strings.Contains(said, "client rate limiter") { // the plugin's own limit
		return false
	}
	said = strings.ReplaceAll(said, " ", "")
	for _, sign := range []string{"toomanyrequests", "resourceexhausted"} {
		if strings.Contains(said, sign) {
			return true
		}
	}
	return regexp.MustCompile(`(\[|http(/[0-9.]+)?|status|code):?=?429\b`).MatchString(said)
}
