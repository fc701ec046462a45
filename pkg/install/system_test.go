package install

import (
	"strings"
	"testing"
)

// What os-release(5) allows, and what is met besides.
func TestReleaseNames(t *testing.T) {
	for text, want := range map[string]string{
		"NAME=x\nID=talos\n":                      "talos",
		"ID=\"talos\"\n":                          "talos",
		"ID='cos' # GKE\n":                        "cos",
		"ID=flatcar\nID_LIKE=coreos\n":            "flatcar coreos",
		"ID=mine\nID_LIKE=\"flatcar  coreos\"\n":  "mine flatcar coreos",
		"# ID=talos\nID=debian\r\n":               "debian",
		"VERSION_ID=1\nVARIANT_ID=cos\nID=ubuntu": "ubuntu",
		"ID=Talos\n":                              "talos",
		"ID=one\nID=two\n":                        "two", // as the shell has it
		"ID=\"\n":                                 "",
		"ID\n":                                    "",
		"":                                        "",
	} {
		n := newNode(t, map[string]string{"/usr/lib/os-release": text})
		n.link("../usr/lib/os-release", "/etc/os-release")
		if got := strings.TrimSpace(strings.Join(newTree(n.root, nil).release(), " ")); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestReleaseThatCannotBeRead(t *testing.T) {
	n := newNode(t, map[string]string{"/etc/os-release/x": "", "/usr/lib/os-release": "ID=cos\n"})
	if !newTree(n.root, nil).is("cos") {
		t.Error("a folder in the file's place hides the other file")
	}
	if newTree(newNode(t, nil).root, nil).is("") {
		t.Error("without a file it has a name")
	}
}

const confidential = "none integrity [confidentiality]\n"

// Where nothing can be installed the first word is that, whatever is known of containerd and
// whatever is asked for; and nothing is promised that the kernel forbids.
func TestSealedPlatforms(t *testing.T) {
	const os, lockdown = "/etc/os-release", "/sys/kernel/security/lockdown"
	for _, test := range []struct {
		name       string
		files      map[string]string
		say, never []string
	}{
		{
			"Talos, not on the node",
			map[string]string{os: "ID=talos\n"},
			[]string{"nothing can be installed", "talosctl -n NODE read /sys/kernel/security/lockdown", "lockdown=integrity", "Then run cniscope as a DaemonSet"},
			[]string{"NRI is off"},
		},
		{
			"Talos as it boots",
			map[string]string{os: "ID=talos\n", lockdown: confidential},
			[]string{"runs with lockdown=confidentiality", "From a DaemonSet plugins and their commands are seen", "lockdown=integrity", "Then run cniscope"},
			nil,
		},
		{
			"Talos that was told otherwise",
			map[string]string{os: "ID=talos\n", lockdown: "none [integrity] confidentiality\n"},
			[]string{"allows the probe (lockdown is integrity)", "DaemonSet"},
			[]string{"confidentiality", "no CNI call"},
		},
		{"COS", map[string]string{os: "ID=cos\n"}, []string{"Container-Optimized OS", "read-only", "Run cniscope as a DaemonSet"}, []string{"version"}},
		{"Bottlerocket", map[string]string{os: "ID=bottlerocket\n"}, []string{"Bottlerocket", "Run cniscope as a DaemonSet"}, nil},
	} {
		for name, change := range map[string]func(*Options){
			"": nil, ", containerd left alone": noContainerd, ", as a plugin": plugin, ", traced": trace("http://127.0.0.1:4317"),
			", configuration named": func(o *Options) { o.ContainerdConfig = "/etc/x.toml" },
		} {
			t.Run(test.name+name, func(t *testing.T) {
				n := newNode(t, test.files)
				n.refused(change, test.say...)
				_, err := New(n.Context(), n.options(change))
				for _, never := range test.never {
					if strings.Contains(err.Error(), never) {
						t.Errorf("it says %q:\n%v", never, err)
					}
				}
			})
		}
	}
}

// Where /usr is read-only the program goes where PATH leads, and comes back with the rest.
func TestFlatcar(t *testing.T) {
	n := newNode(t, map[string]string{"/etc/os-release": "ID=flatcar\nID_LIKE=coreos\n", "/etc/containerd/config.toml": config4})
	before := n.tree()
	if got, want := steps(n.install(nil)), strings.Replace(asService, "/usr/local/bin", "/opt/bin", 1); got != want {
		t.Errorf("it does:\n%s\nwant:\n%s", got, want)
	}
	if unit := n.text(unitFile); !strings.Contains(unit, "ExecStart=/opt/bin/cniscope run") || strings.Contains(unit, "/usr/local") {
		t.Errorf("the unit starts another program:\n%s", unit)
	}
	n.build("2")
	if got := steps(n.install(nil)); got != "changed /opt/bin/cniscope" {
		t.Errorf("an upgrade does:\n%s", got)
	}
	n.uninstall(false)
	n.same(before)
}

// A kernel in which the probe cannot be loaded is said on any system.
func TestLockdownIsSaid(t *testing.T) {
	for text, want := range map[string]bool{confidential: true, "none [integrity] confidentiality\n": false, "": false} {
		n := newNode(t, map[string]string{"/sys/kernel/security/lockdown": text})
		notes := strings.Join(n.plan(version("2.4")).Notes, "\n")
		if strings.Contains(notes, "lockdown=confidentiality") != want {
			t.Errorf("%q: it says %q", text, notes)
		}
	}
}

// What is to be expected of a kernel that may refuse BPF programs is said before anything is done: RHEL 8, and one without BTF.
func TestAKernelThatMayRefuseBPFIsSaid(t *testing.T) {
	const release, btf = "/proc/sys/kernel/osrelease", "/sys/kernel/btf/vmlinux"
	for name, test := range map[string]struct {
		files map[string]string
		say   string
	}{
		"RHEL 8":          {map[string]string{release: "4.18.0-553.el8_10.x86_64\n", btf: "x"}, "Linux 4.18.0-553.el8_10.x86_64 is older than 5.8"},
		"Debian 10":       {map[string]string{release: "4.19.0-27-amd64\n", "/sys/kernel/x": ""}, "older than 5.8"},
		"without BTF":     {map[string]string{release: "6.6.1\n", "/sys/kernel/x": ""}, "no /sys/kernel/btf/vmlinux"},
		"with all":        {map[string]string{release: "6.12.1\n", btf: "x"}, ""},
		"an image's tree": {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, test.files)
			notes := strings.Join(n.install(noContainerd).Notes, "\n")
			if said := strings.Contains(notes, "process connector"); said != (test.say != "") || !strings.Contains(notes, test.say) {
				t.Errorf("it says %q, want %q", notes, test.say)
			}
		})
	}
}
