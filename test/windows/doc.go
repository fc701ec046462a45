// Package windows tests cniscope for Windows under wine: the real containerd.exe runs a CNI plugin, the plugin runs
// powershell.exe or calls an agent, and cniscope.exe exports spans. Stand-ins replace parts that wine lacks
// (standin/, computenetwork.c). Durations are meaningless here; only cause and effect count.
package windows
