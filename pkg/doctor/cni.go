package doctor

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/containernetworking/cni/pkg/version"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/text"
)

func folderLoads(f *fact.Facts) ([]Finding, error) {
	r := f.Runtime.Value
	d := f.Folder.Value
	switch {
	case d.Missing:
		return []Finding{Problem.finding(fact.Sayf("the CNI directory %s does not exist", d.Dir),
			append(unwatched(f), loadError(f)...), folderAgain(r)...)}, nil
	case d.Blocking != "":
		return []Finding{Problem.finding(
			fact.Sayf("the first CNI configuration, %s, %s, so containerd loads no network", d.Blocking, invalid(d)),
			slices.Concat(fact.Each(d.Problems, fact.Clean), order(f), loadError(f)), renamed(d)...)}, nil
	case len(d.Networks) == 0:
		_, remedy := nobodyWrote(f)
		return []Finding{Problem.finding(fact.Sayf("%s contains no CNI configuration", d.Dir),
			append(empty(f), loadError(f)...), remedy...)}, nil
	case len(d.Problems) == 0:
		return nil, nil
	}
	level := Note
	if f.CRI.Err == nil && r.Containerd() && (f.CRI.Value.MaxConf == 0 || f.CRI.Value.MaxConf > len(d.Networks)) {
		level = Problem
	}
	return []Finding{level.finding(fact.Sayf("%s has a file that is not a valid CNI configuration", d.Dir),
		append(fact.Each(d.Problems, fact.Clean), loadError(f)...), "correct or remove it")}, nil
}

func renamed(d fact.Folder) (remedy []string) {
	if slices.ContainsFunc(d.Problems, func(p string) bool {
		_, says, of := strings.Cut(p, d.Blocking)
		return of && (strings.Contains(says, "missing 'type'") || strings.Contains(says, "no 'plugins' key"))
	}) {
		remedy = []string{"if the file has a list of plugins, its name must end in .conflist, otherwise in .conf: rename it"}
	}
	return append(remedy, fact.Sayf("correct the file, or move it away: mv %s /root/", text.Shell(d.Dir+"/"+d.Blocking)))
}

func invalid(d fact.Folder) string {
	if d.NotJSON {
		return "is not valid JSON"
	}
	return "is not a valid CNI configuration"
}

func loadError(f *fact.Facts) []string {
	if f.CRI.Err != nil || f.CRI.Value.LastLoad == "" {
		return nil
	}
	return []string{fact.Sayf("containerd reports lastCNILoadStatus: %s", f.CRI.Value.LastLoad)}
}

func folderAgain(r fact.Runtime) []string {
	if r.Absent {
		return []string{"first install a container runtime"}
	}
	return []string{
		r.Restart() + " (it makes the directory again)",
		"then restart the CNI's pod, which writes its configuration",
	}
}

func unwatched(f *fact.Facts) []string {
	r := f.Runtime.Value
	if r.Containerd() {
		return []string{"containerd stops when that directory is removed, and watches a new one only after its next start"}
	}
	if r.Absent {
		return []string{"a container runtime reads its CNI configuration there"}
	}
	return []string{fact.Sayf("%s reads it; the path comes from %s", r.Called(), cmp.Or(f.CRI.Value.Said, "its default"))}
}

func empty(f *fact.Facts) (said []string) {
	d := f.Folder.Value
	if len(d.Elsewhere) > 0 {
		said = []string{fact.Sayf("CNI configuration in a directory that %s does not read: ", f.Runtime.Value.Called()) +
			fact.List(d.Elsewhere)}
	}
	if len(d.Other) == 0 {
		return append(said, "it is empty")
	}
	return append(said, fact.Sayf("%s reads only .conf, .conflist and .json files, so it ignores ",
		f.Runtime.Value.Called())+fact.List(fact.Each(d.Other, strconv.Quote)))
}

func order(f *fact.Facts) []string {
	d := f.Folder.Value
	if len(d.Networks) == 0 {
		return nil
	}
	files := fact.Each(d.Networks, func(n event.Network) string { return n.File + " (network " + n.Name + ")" })
	return []string{"later files, also not loaded: " + fact.List(files)}
}

const (
	noNetwork   = notApplicable("no network is configured: see cni-folder")
	notLoadable = notApplicable("the directory cannot be loaded: see cni-folder")
)

func binariesAreThere(f *fact.Facts) ([]Finding, error) {
	if len(fact.Winners(f)) == 0 && len(f.CRI.Value.Loaded) == 0 {
		return nil, noNetwork
	}
	var found []Finding
	for _, b := range f.Binaries.Value {
		if b.Wrong == nil {
			continue
		}
		says, remedy := judge.Unstartable(*b.Wrong)
		finding := Problem.finding(fact.Sayf("the CNI plugin %s cannot be run", b.Name),
			[]string{fact.Sayf("network \"%s\" needs it", b.Network), fact.Clean(says)},
			cmp.Or(fact.Clean(remedy), remedyFor(f, b.Name)))
		for _, a := range f.Held.Value.Stopped {
			if a.Network == b.Network {
				finding.Evidence = append(finding.Evidence, fact.Sayf("sandbox %s (pod %s) cannot be removed without it",
					a.ContainerID, podOf(a)))
			}
		}
		finding.Evidence = fact.Cap(finding.Evidence)
		found = append(found, finding)
	}
	return found, nil
}

var reference = []string{
	"bridge", "host-local", "portmap", "firewall", "tuning", "bandwidth", "loopback", "ptp", "macvlan", "ipvlan",
	"vlan", "host-device", "dhcp", "static", "sbr", "vrf", "dummy", "tap",
}

func remedyFor(f *fact.Facts, name string) string {
	dir := slices.Concat(f.CRI.Value.BinDirs, []string{"/opt/cni/bin"})[0]
	if slices.Contains(reference, name) {
		return fact.Sayf("install the reference plugins into %s (package kubernetes-cni or containernetworking-plugins, or "+
			"a release of github.com/containernetworking/plugins)", dir)
	}
	return see(f, fact.Sayf("restart the pod that installs %s into %s", name, dir), "network-pods") +
		fact.Sayf("; if %s was uninstalled, remove it from the CNI configuration", name)
}

func versionsAreKnown(f *fact.Facts) ([]Finding, error) {
	var found []Finding
	winners := fact.Winners(f)
	if len(winners) == 0 {
		return nil, noNetwork
	}
	for _, n := range winners {
		v := cmp.Or(n.CNIVersion, "0.1.0") // the specification's word for none
		known := version.All.SupportedVersions()
		// containerd 1.7 has libcni 1.1, which ends at 1.0.0.
		if f.Runtime.Value.Containerd1() {
			known = slices.DeleteFunc(slices.Clone(known), func(k string) bool { return k == "1.1.0" })
		}
		if slices.Contains(known, v) {
			continue
		}
		found = append(found, Problem.finding(
			fact.Sayf("%s does not support the cniVersion of network \"%s\"", f.Runtime.Value.Called(), n.Name),
			[]string{
				fact.Sayf("%s: cniVersion %s", n.File, v),
				fact.Sayf("%s supports %s", f.Runtime.Value.String(), strings.Join(known, ", ")),
			},
			fact.Sayf("set cniVersion in %s to a supported version, usually 1.0.0", n.File)))
	}
	return found, nil
}

// containerd overlooks a file that is moved into the directory (internal/cri/server/cni_conf_syncer.go).
func loadedIsCurrent(f *fact.Facts) ([]Finding, error) {
	if !f.CRI.Value.Told {
		return nil, notApplicable(f.Runtime.Value.Called() + " does not report which networks it loaded; doctor reads " +
			"its directory")
	}
	if f.Folder.Value.Blocking != "" || f.Folder.Value.Missing {
		return nil, notLoadable
	}
	says, has := fact.Winners(f), f.CRI.Value.Loaded
	if len(says) == 0 && len(has) == 0 {
		return nil, noNetwork
	}
	different := len(says) != len(has)
	for i := 0; !different && i < len(says); i++ {
		different = differs(says[i], has[i], f.Folder.Value.Digests[says[i].File])
	}
	if !different {
		return nil, nil
	}
	level := Warning
	if len(has) == 0 {
		level = Problem
	}
	dir := f.Folder.Value.Dir
	return []Finding{level.finding(fact.Sayf("containerd has loaded an older CNI configuration than %s contains", dir),
		append([]string{
			"the directory contains: " + describe(says), "containerd has loaded: " + describe(fact.Networks(has)),
		}, loadError(f)...),
		fact.Sayf("create and remove a file, so that containerd reads the directory again: touch %s/.reload && "+
			"rm %[1]s/.reload", dir),
		"make the CNI's installer write its file in that directory: containerd overlooks a file that is moved there",
	)}, nil
}

func differs(file event.Network, has fact.Loaded, digest string) bool {
	if digest != "" && has.Digest != "" {
		return file.Name != has.Name || digest != has.Digest
	}
	return file.Name != has.Name || file.CNIVersion != has.CNIVersion || !slices.Equal(file.Plugins, has.Plugins)
}

func describe(all []event.Network) string {
	if len(all) == 0 {
		return "no network"
	}
	var said []string
	for _, n := range all {
		var chain []string
		for _, p := range n.Plugins {
			if p.IPAM != "" {
				p.Type += "(" + p.IPAM + ")"
			}
			chain = append(chain, p.Type)
		}
		network := n.Name + " " + strings.Join(chain, "+")
		if n.File != "" {
			network += " from " + n.File
		}
		said = append(said, network)
	}
	return fact.List(said)
}

func rightOneWins(f *fact.Facts) ([]Finding, error) {
	d, used := f.Folder.Value, fact.Winners(f)
	switch {
	case d.Blocking != "":
		return nil, notLoadable
	case len(d.Networks) == 0:
		return nil, noNetwork
	}
	ignored := slices.DeleteFunc(slices.Clone(d.Networks), func(n event.Network) bool {
		return slices.ContainsFunc(used, func(u event.Network) bool { return u.File == n.File })
	})
	if len(ignored) == 0 {
		return nil, nil
	}
	evidence := []string{
		fact.Sayf("%s reads .conf, .conflist and .json by name and uses %s: %s", f.Runtime.Value.Called(),
			which(f.CRI.Value), describe(used)),
		"ignored: " + describe(ignored),
	}
	if f.Processes.Err == nil && f.Containers.Err == nil {
		for _, n := range ignored {
			owner, ok := fact.OwnerOf(n)
			if by := runs(owner, f); ok && by != "" && !slices.ContainsFunc(used, owner.Owns) {
				return []Finding{Warning.finding(
					fact.Sayf("%s is used, though %s runs here: its %s is ignored", used[0].File, owner.Name, n.File),
					append(evidence, by), fact.Sayf("if this cluster uses %s, move the other file away: mv %s /root/", owner.Name,
						text.Shell(d.Dir+"/"+used[0].File)))}, nil
			}
		}
	}
	return []Finding{Note.finding(fact.Sayf("%s contains networks that the runtime ignores", d.Dir), evidence,
		"remove the ignored files, or the first file if its network is wrong")}, nil
}

func which(c fact.CRI) string {
	if c.Default != "" {
		return fact.Sayf("its default network, %s", c.Default)
	}
	return fact.Sayf("the first %d", c.MaxConf)
}

func runs(c fact.CNI, f *fact.Facts) string {
	for _, p := range f.Processes.Value {
		if p.HostNet && slices.Contains(c.Agents, p.Name) {
			return fact.Sayf("process %d is %s", p.PID, p.Name)
		}
	}
	for _, k := range f.Containers.Value {
		if k.SandboxReady && (slices.Contains(c.Agents, k.Name) ||
			slices.Contains(c.Agents, strings.TrimPrefix(k.Name, "install-"))) {
			return k.String() + " is " + k.State
		}
	}
	return ""
}

func nothingIsLeftOver(f *fact.Facts) ([]Finding, error) {
	used := slices.Concat(fact.Networks(f.CRI.Value.Loaded), fact.Winners(f))
	// Multus delegates to networks that are not in the folder.
	if slices.ContainsFunc(used, func(n event.Network) bool {
		return slices.ContainsFunc(n.Plugins, func(p event.Plugin) bool {
			return p.Type == "multus" || p.Type == "multus-shim"
		})
	}) {
		used = append(used, f.Folder.Value.Networks...)
	}
	var found []Finding
	for _, c := range fact.CNIs() {
		if slices.ContainsFunc(used, c.Owns) || runs(c, f) != "" {
			continue
		}
		var evidence []string
		for _, l := range f.Network.Value.Links {
			if fact.Matches(c.Links, l.Name) {
				evidence = append(evidence, fact.Sayf("interface %s", l.Name))
			}
		}
		chains := map[string]int{}
		for _, k := range f.Chains.Value {
			if fact.Matches(c.Chains, k.Name) {
				chains[k.Backend+" "+k.Family+" "+k.Table]++
			}
		}
		var tables []string
		for table, n := range chains {
			tables = append(tables, fact.Sayf("%s: %s of %s", table, text.Count(n, "chain"), c.Name))
		}
		slices.Sort(tables)
		evidence = append(evidence, tables...)
		if len(evidence) == 0 {
			continue
		}
		found = append(found, Warning.finding(fact.Sayf("%s does not run here, but left interfaces or chains", c.Name),
			append(fact.Cap(evidence), "used: "+describe(used)), c.Remedy))
	}
	return found, f.Chains.Err
}
