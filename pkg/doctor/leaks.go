package doctor

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/doctor/gather"
	"github.com/cniscope/cniscope/pkg/leak"
	"github.com/cniscope/cniscope/pkg/text"
)

// Held finds what sandboxes hold, which of them exist, and the plugins' directories.
func Held(ctx context.Context, o fact.Options) (l leak.Look, stuck Stuck, binDirs []string, err error) {
	f := within(ctx, o, gather.Held)
	return f.Held.Value, stuckOf(f), binsOf(f), f.Held.Err
}

// Stuck are attachments of sandboxes that containerd cannot stop without a CNI configuration.
type Stuck struct {
	Attachments []leak.Attachment
	dir         string
}

// stuckOf ignores CRI-O, which reads libcni's cache.
func stuckOf(f *fact.Facts) Stuck {
	d := f.Folder.Value
	if !f.Runtime.Value.Containerd() || f.CRI.Err != nil || f.CRI.Value.Network || f.Folder.Err != nil ||
		d.Blocking != "" || len(d.Networks) > 0 {
		return Stuck{}
	}
	return Stuck{Attachments: f.Held.Value.Stopped, dir: d.Dir}
}

// Of returns one of them.
func (s Stuck) Of(a leak.Attachment) Stuck { return Stuck{[]leak.Attachment{a}, s.dir} }

// Says is empty without sandboxes.
func (s Stuck) Says() string {
	sandboxes, networks := map[string]bool{}, []string{}
	for _, a := range s.Attachments {
		sandboxes[a.ContainerID] = true
		if network := `"` + a.Network + `"`; !slices.Contains(networks, network) {
			networks = append(networks, network)
		}
	}
	if len(sandboxes) == 0 {
		return ""
	}
	return fact.Sayf("%s cannot be stopped: DEL needs the missing configuration of network %s",
		text.Count(len(sandboxes), "sandbox", "sandboxes"), fact.List(networks))
}

// Remedy has a command for each network.
func (s Stuck) Remedy() (commands []string) {
	var networks []string
	for _, a := range s.Attachments {
		if slices.Contains(networks, a.Network) || !leak.Plain(s.dir) {
			continue
		}
		networks = append(networks, a.Network)
		commands = append(commands, fact.Sayf("jq -r '.config|@base64d' %s > %s/%s.conflist # restores the configuration "+
			"from libcni's cache; if this CNI was uninstalled, remove the new file once the sandboxes are stopped",
			a.File, s.dir, a.Network))
	}
	return commands
}

func networksAreGivenBack(f *fact.Facts) (found []Finding, err error) {
	if s := stuckOf(f); s.Says() != "" {
		found = append(found, Problem.finding(s.Says(), s.evidence(), s.Remedy()...))
	}
	l := heldBy(f)
	if len(l.Damaged) > 0 && f.Runtime.Value.Containerd1() {
		found = append(found, damaged(l))
	}
	leaked := l.Attachments(f.Scope.Value.Recent.Held, leakAge(f))
	if len(leaked) == 0 {
		return found, nil
	}
	finding := Warning.finding(fact.Sayf("%s without a sandbox (DEL missing or failed), up to %s old",
		text.Count(len(leaked), "network attachment"), age(l.Time.Sub(leaked[0].Since))), nil)
	var files []string
	for _, a := range leaked {
		finding.Evidence = append(finding.Evidence, saysAttachment(l, a))
		if a.File != "" && len(files) < fact.Listed {
			files = append(files, a.File)
		}
	}
	finding.Evidence = fact.Cap(finding.Evidence)
	if len(files) > 0 {
		finding.Remedy = append(finding.Remedy,
			"run the plugins' DEL, as the runtime would, with the next command (needs jq)",
			leak.Free(files, binsOf(f)))
	}
	if slices.ContainsFunc(leaked, func(a leak.Attachment) bool { return a.File == "" }) {
		finding.Remedy = append(finding.Remedy, "for attachments that only cniscope saw: free the addresses that "+
			"leaked-leases names, and delete interfaces and rules that contain the sandbox's ID, or restart the node")
	}
	return append(found, finding), nil
}

func damaged(l leak.Look) Finding {
	files := fact.Each(l.Damaged, func(a leak.Attachment) string { return a.File })
	return Problem.finding(fact.Sayf("libcni's cached result of %s is empty or cut off, so containerd 1 cannot stop the "+
		"sandbox", text.Count(len(l.Damaged), "network attachment")),
		fact.Cap(fact.Each(l.Damaged, func(a leak.Attachment) string {
			return fact.Sayf("%s, of sandbox %s, written %s ago", a.File, a.ContainerID, age(l.Time.Sub(a.Since)))
		})), "rm "+strings.Join(files[:min(len(files), fact.Listed)], " "))
}

func binsOf(f *fact.Facts) []string {
	dirs := slices.DeleteFunc(slices.Clone(f.CRI.Value.BinDirs), func(dir string) bool { return !leak.Plain(dir) })
	if len(dirs) == 0 {
		return []string{"/opt/cni/bin"}
	}
	return dirs
}

func saysAttachment(l leak.Look, a leak.Attachment) string {
	line := fact.Sayf("%s of %s, pod %s, sandbox %s, since %s (%s)", a.IfName, networkOf(a.Network), podOf(a),
		a.ContainerID, stamp(a.Since), age(l.Time.Sub(a.Since)))
	if len(a.Addresses) > 0 {
		line += ", " + fact.List(a.Addresses)
	}
	if before(l, a.Since) {
		line += ", before the node was restarted"
	}
	if a.Failed {
		line += "; the ADD failed and was not undone"
	}
	if a.Tried > 0 {
		line += fact.Sayf("; DEL failed %d times, the last time: %s", a.Tried, a.Says)
	}
	if a.File == "" {
		line += "; only cniscope saw the ADD"
	}
	return line
}

func (s Stuck) evidence() []string {
	return fact.Cap(fact.Each(s.Attachments, func(a leak.Attachment) string {
		return fact.Sayf("sandbox %s of pod %s: libcni's cache of its ADD is %s", a.ContainerID, podOf(a), a.File)
	}))
}

func networkOf(name string) string {
	if name == "" {
		return "a network of unknown name"
	}
	return fact.Sayf("network \"%s\"", name)
}

func podOf(a leak.Attachment) string {
	if a.Pod.Name == "" {
		return "unknown"
	}
	return fact.Sayf("%s/%s", a.Pod.Namespace, a.Pod.Name)
}

func leasesAreGivenBack(f *fact.Facts) ([]Finding, error) {
	l := heldBy(f)
	leaked := map[string][]leak.Lease{}
	var networks []string
	for _, one := range l.Leaked(leakAge(f)) {
		if leaked[one.Network] == nil {
			networks = append(networks, one.Network)
		}
		leaked[one.Network] = append(leaked[one.Network], one)
	}
	var found []Finding
	for _, network := range networks {
		found = append(found, leasesOf(f, network, leaked[network]))
	}
	return found, nil
}

const removed = 32

func leasesOf(f *fact.Facts, network string, leaked []leak.Lease) Finding {
	l := f.Held.Value
	finding := Warning.finding(fact.Sayf(
		"removed sandboxes have held %d of %s of network \"%s\" (host-local) for up to %s",
		len(leaked), text.Count(max(l.Total[network], len(leaked)), "address", "addresses"), network,
		age(l.Time.Sub(leaked[0].Since))), nil)
	var files, cached []string
	old := 0
	for _, one := range leaked {
		who := "sandbox " + one.ContainerID
		if one.IfName != "" {
			who = one.IfName + " of " + who
		}
		finding.Evidence = append(finding.Evidence, fact.Sayf("%s, leased to %s since %s (%s)", one.Address, who,
			stamp(one.Since), age(l.Time.Sub(one.Since))))
		if before(l, one.Since) {
			old++
		}
		if slices.ContainsFunc(l.Cached, func(a leak.Attachment) bool { return a.ContainerID == one.ContainerID }) {
			cached = append(cached, one.Address)
			continue
		}
		if len(files) < removed {
			files = append(files, one.File)
		}
	}
	finding.Evidence = fact.Cap(finding.Evidence)
	if old > 0 {
		finding.Evidence = append(finding.Evidence, fact.Sayf("%s from before the node's restart at %s",
			text.Count(old, "lease"), stamp(l.Boot)))
	}
	if len(cached) > 0 {
		finding.Remedy = append(finding.Remedy, fact.Sayf("for %s: run the command under leaked-networks, which also "+
			"frees the address", fact.List(cached)))
	}
	if len(files) > 0 {
		finding.Remedy = append(finding.Remedy, "rm "+strings.Join(files, " ")+
			" # frees the addresses: host-local has no other record of them")
	}
	return finding
}

func heldBy(f *fact.Facts) leak.Look {
	l := f.Held.Value
	l.Alive = maps.Clone(l.Alive)
	for _, c := range f.Scope.Value.Calls {
		if l.Alive == nil {
			l.Alive = map[string]bool{}
		}
		l.Alive[c.ContainerID] = true
	}
	return l
}

func before(l leak.Look, since time.Time) bool { return !l.Boot.IsZero() && since.Before(l.Boot) }

func leakAge(f *fact.Facts) time.Duration { return cmp.Or(f.Options.Leak, leak.After) }

func age(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return text.Count(int(d/(24*time.Hour)), "day")
	case d >= time.Hour:
		return d.Round(time.Minute).String()
	}
	return d.Round(time.Second).String()
}
