// Package windows proves what cniscope observes of a Windows node, under wine: the real containerd.exe runs a CNI plugin,
// that runs powershell.exe or calls an agent, and cniscope.exe sends spans to a backend. What wine lacks stand-ins do
// (standin/, computenetwork.c). Durations mean nothing here; what follows from what does.
package windows
