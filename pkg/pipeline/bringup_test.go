package pipeline

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

type nodeStart struct {
	*Pipeline
	at   int64
	said []string
}

func (n *nodeStart) then(seconds int64, bodies ...event.Body) *nodeStart {
	n.at += seconds * int64(time.Second)
	for _, body := range bodies {
		for _, r := range n.Apply(event.Event{Time: n.at, Body: body}) {
			b, is := r.(*BringUp)
			if !is {
				continue
			}
			n.said = append(n.said, b.Cause+": "+b.Says)
			for _, x := range b.Read().ScopeSpans[0].Spans {
				n.said = append(n.said, fmt.Sprintf("%s %d-%d", x.Name, x.StartTimeUnixNano/1e9, x.EndTimeUnixNano/1e9))
			}
		}
	}
	return n
}

func (n *nodeStart) pod(id string, code uint32, after ...event.Body) *nodeStart {
	call := &event.Call{Command: "ADD", ContainerID: id, IfName: "eth0"}
	n.then(1, &event.Exec{Process: event.Process("p" + id), Parent: "cd", Root: true, InPath: true, File: "/b/bridge", Name: "bridge", Call: call})
	n.then(1, &event.Exit{Process: event.Process("p" + id), Code: code})
	for _, body := range after {
		n.then(1, body)
	}
	for range 5 {
		n.then(1, &event.Tick{})
	}
	return n
}

func TestTheBringUpsOfANode(t *testing.T) {
	const s = int64(time.Second)
	none := &event.Readiness{Reason: "cni plugin not initialized", Lacks: event.LackConfiguration, Missing: "no file"}
	gone := &event.Readiness{Reason: "cni plugin not initialized", Lacks: event.LackPlugin, Missing: "no bridge"}
	ready := &event.Readiness{Ready: true}
	since := func(at int64) *event.Registered { return &event.Registered{PID: 7, Since: at * s} }
	runs := func(id string) event.Body {
		return &event.Sandbox{ID: id, Phase: event.SandboxRunning, Pod: event.Pod{Namespace: "shop", Name: id}}
	}
	ran := func(id string, code uint32) event.Body {
		return &event.Step{SandboxID: id, Kind: event.StepRuntime, Verb: "start", Code: code}
	}
	for _, c := range []struct {
		name, want string
		of         func(n *nodeStart)
	}{
		{
			"another outage before the first pod", "cni_plugin: 40s of 1m24s: no bridge; node bring-up 0-84; boot 0-20; runtime start 20-25; " +
				"wait for CNI configuration 25-30; wait for pod 30-40; wait for CNI plugin 40-80; wait for pod 80-81; first pod 81-84",
			func(n *nodeStart) {
				n.then(25, since(20), none).then(5, ready).then(10, gone).then(40, ready).pod("a", 0, ran("a", 0), runs("a"))
			},
		},
		{
			"a pod whose first ten attempts fail in a plugin", "pod: 1m11s of 1m44s: until pod shop/a was started, after 10 that failed; " +
				"node bring-up 0-104; boot 0-20; runtime start 20-25; wait for CNI configuration 25-30; wait for pod 30-101; first pod 101-104",
			func(n *nodeStart) {
				n.then(25, since(20), none).then(5, ready)
				for i := range 10 {
					n.pod(fmt.Sprint("x", i), 1)
				}
				n.pod("a", 0, ran("a", 0), runs("a"))
			},
		},
		{
			"one whose runtime fails", "boot: 20s of 43s: until the runtime was started; node bring-up 0-43; boot 0-20; runtime start 20-25; " +
				"wait for CNI configuration 25-30; wait for pod 30-39; first pod 39-43",
			func(n *nodeStart) {
				n.then(25, since(20), none).then(5, ready).pod("x", 0, ran("x", 1)).then(0, &event.Sandbox{ID: "x", Phase: event.SandboxRemoved})
				n.then(0).pod("a", 0, ran("a", 0), &event.Tick{}, runs("a"))
			},
		},
		{
			"a start without a program that was seen", "boot: 20s of 33s: until the runtime was started; node bring-up 0-33; boot 0-20; " +
				"runtime start 20-25; wait for CNI configuration 25-30; wait for pod 30-31; first pod 31-33",
			func(n *nodeStart) { n.then(25, since(20), none).then(5, ready).pod("a", 0, runs("a")) },
		},
		{"a restart of the runtime on a node with pods", "", func(n *nodeStart) {
			n.then(9000, ready).then(1, since(9000), none).then(5, ready).pod("a", 0, ran("a", 0), runs("a"))
		}},
		{"another registration", "", func(n *nodeStart) {
			n.then(25, since(20), ready).then(10, since(20), none).then(5, ready).pod("a", 0, ran("a", 0), runs("a"))
		}},
		{
			"a restart of the runtime during the wait", "cni_configuration: 5m10s of 5m39s: no file; node bring-up 0-339; boot 0-20; " +
				"runtime start 20-25; wait for CNI configuration 25-335; wait for pod 335-336; first pod 336-339",
			func(n *nodeStart) {
				n.then(25, since(20), none).then(300, since(322)).then(10, ready).pod("a", 0, ran("a", 0), runs("a"))
			},
		},
		{
			"cniscope started late", "runtime: 8m0s of 8m29s: until the runtime answered cniscope; node bring-up 0-509; boot 0-20; " +
				"runtime start 20-500; wait for CNI configuration 500-505; wait for pod 505-506; first pod 506-509",
			func(n *nodeStart) {
				n.then(500, since(20), none).then(5, ready).pod("a", 0, ran("a", 0), runs("a"))
			},
		},
		{"a runtime started after its network was ready", "", func(n *nodeStart) {
			n.then(25, since(9000), none).then(5, ready).pod("a", 0, ran("a", 0), runs("a"))
		}},
		{
			"a clock set during the wait", "boot: 20s of 34s: until the runtime was started; node bring-up 1000-1034; boot 1000-1020; " +
				"runtime start 1020-1025; wait for CNI configuration 1025-1030; wait for pod 1030-1031; first pod 1031-1034",
			func(n *nodeStart) {
				n.then(25, since(20), none).then(5, ready, &event.Clock{Wall: 1030 * s}).pod("a", 0, ran("a", 0), runs("a"))
			},
		},
	} {
		n := &nodeStart{Pipeline: small()}
		c.of(n)
		harness.Equal(t, strings.Join(n.said, "; "), c.want, c.name)
	}
}
