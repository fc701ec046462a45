package judge

import (
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

// A recording's author, or a user of the node, chooses paths and names in commands that an operator may run as root.
func TestNoRemedyRunsForeignWords(t *testing.T) {
	const hostile, harmless = "/tmp/x;reboot", "'/tmp/x;reboot'"
	chain := event.Obstacle{Kind: event.ObstaclePolicy, Chain: &event.Chain{Backend: "nftables", Family: "ip", Table: "filter", Name: "x;flush ruleset"}}
	gone := &missedPath{Missing: &model.Missing{Missing: &event.Missing{Path: hostile, Error: "EEXIST", Name: "openat"}}, by: &span{plugin: "p"}}
	for of, remedy := range map[string]string{
		"lock":     release(hostile, nil),
		"frozen":   goOn(1, "agent", event.AgentFrozen, hostile),
		"mode":     second(Unstartable(event.Program{Fault: event.FaultMode, File: hostile})),
		"script":   second(Unstartable(event.Program{Fault: event.FaultInterpreter, File: hostile, Needs: `"/bin/sh\r"`})),
		"mount":    second(Unstartable(event.Program{Fault: event.FaultMount, Has: hostile})),
		"sysctl":   strings.ReplaceAll(second(Obstacle(event.Obstacle{Kind: event.ObstacleSwitch, Name: hostile})), hostile+"=1", hostile),
		"table":    strings.ReplaceAll(second(Obstacle(event.Obstacle{Kind: event.ObstacleTable, Option: hostile})), hostile+"=0", hostile),
		"lockfile": gone.verdict(&evidence{call: &model.Call{LockFiles: map[string]*event.LockFile{hostile: {Path: hostile, Gone: true, Maker: &event.Actor{PID: 7}}}}}).Remedy,
		"polled":   gone.verdict(&evidence{call: &model.Call{}}).Remedy,
	} {
		if !strings.Contains(remedy, harmless) || strings.Contains(strings.ReplaceAll(remedy, harmless, ""), hostile) {
			t.Errorf("%s: %s", of, remedy)
		}
	}
	if remedy := second(Obstacle(chain)); strings.Contains(remedy, "flush") {
		t.Errorf("chain: %s", remedy)
	}
}

func second(_, s string) string { return s }
