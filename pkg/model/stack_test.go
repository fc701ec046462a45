package model

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

func TestAFunctionIsNamedAsItsAuthorDoes(t *testing.T) {
	for function, want := range map[string]string{
		"main.main": "main",
		"antrea.io/antrea/pkg/agent/cniserver.(*podConfigurator).configureContainerLink": "configureContainerLink",
		"example.com/v2.run":                               "run",
		"example.com/x.Map[...]":                           "Map",
		"example.com/x.(*Set[...]).Add":                    "Add",
		"main.main.func1":                                  "main",
		"main.cmdAdd.func2.1":                              "cmdAdd",
		"main.cmdAdd.gowrap1":                              "cmdAdd",
		"main.func1":                                       "func1",
		"gopkg.in/yaml%2ev3.Unmarshal":                     "Unmarshal",
		"antrea.io/antrea/pkg/agent/util.GetNetInterface1": "GetNetInterface1",
		"": "",
	} {
		harness.Equal(t, functionName(function), want, function)
	}
}

func TestTheCallPathIsShort(t *testing.T) {
	stack := []event.Frame{
		{Function: "m/util.Run", File: "m/util/run.go", Line: 9},
		{Function: "m/net.get.func1"},
		{Function: "m/net.get"},
		{Function: "m/net.(*c).configure"},
		{Function: "main.main"},
	}
	harness.Equal(t, CallPath(stack), "configure > get > Run (run.go:9)")
	harness.Equal(t, CallPath(stack[:1]), "Run (run.go:9)")
	harness.Equal(t, CallPath(nil), "")
}

func TestCallersInCommon(t *testing.T) {
	a := []event.Frame{{Function: "m.get", File: "a.go", Line: 3}, {Function: "m.set", File: "b.go", Line: 9}, {Function: "m.add", File: "c.go", Line: 1}}
	b := []event.Frame{{Function: "m.put", File: "a.go", Line: 4}, {Function: "m.set", File: "b.go", Line: 12}, {Function: "m.add", File: "c.go", Line: 1}}
	got := CommonCallers(a, b)
	harness.Equal(t, len(got), 2)
	harness.Equal(t, Caller(got[0]), "set (b.go)")
	harness.Equal(t, Caller(got[1]), "add (c.go:1)")
	harness.Equal(t, len(CommonCallers(a, nil)), 0)
}
