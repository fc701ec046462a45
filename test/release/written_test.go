package release

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

// GitHub can run the workflows, their actions are pinned, and their commands exist.
func TestTheWorkflowsAreValid(t *testing.T) {
	for file, commands := range map[string][]string{
		"release.yml":  {"make release", "secrets.MINISIGN_KEY", "release-notes.md", "minisign -V", "cniscope_${number}_image.tar.gz", "cniscope-$number.tgz"},
		"test.yml":     {"pull_request:", "make check", "make test"},
		"analysis.yml": {"pull_request:", "schedule:", "make lint", "govulncheck@v"},
	} {
		file = "../../.github/workflows/" + file
		if out, err := exec.Command("../tools/bin/actionlint", "-no-color", file).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		text := harness.Must(os.ReadFile(file))(t)
		says(t, string(text), commands...)
		for _, action := range regexp.MustCompile(`uses: (\S+)`).FindAllStringSubmatch(string(text), -1) {
			if !regexp.MustCompile(`@[0-9a-f]{40}$`).MatchString(action[1]) {
				t.Errorf("%s: %s can change under us: name its commit", file, action[1])
			}
		}
	}
}

// docs/versions.md lists the versions of the tests.
func TestSupportedVersionsAreThoseOfTheTests(t *testing.T) {
	page := harness.Must(os.ReadFile("../../docs/versions.md"))(t)
	row := map[string]string{}
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, "|"); len(cells) == 5 {
			row[strings.TrimSpace(cells[1])] = cells[3]
		}
	}
	for _, pin := range []struct{ row, tool, module string }{
		{"containerd", "containerd", "github.com/containerd/containerd/v2"},
		{"containerd", "containerd-2.3", "github.com/containerd/containerd/v2"},
		{"containerd", "containerd-1.7", "github.com/containerd/containerd"},
		{"CRI-O", "crio", "github.com/cri-o/cri-o"},
		{"Kubernetes", "kubernetes", "k8s.io/kubernetes"},
		{"chart", "kubernetes", "k8s.io/kubernetes"},
	} {
		mod := harness.Must(os.ReadFile("../tools/" + pin.tool + "/go.mod"))(t)
		found := regexp.MustCompile(`(?m)(?:^\s*|require )` + regexp.QuoteMeta(pin.module) + ` v(\S+)`).FindSubmatch(mod)
		if found == nil || !strings.Contains(row[pin.row], string(found[1])) {
			t.Errorf("%s of %s is %q, and docs/versions.md says%s", pin.module, pin.tool, found, row[pin.row])
		}
	}
	kernels := harness.Must(os.ReadFile("../kernels/testdata/features.md"))(t)
	columns := regexp.MustCompile(`(?m)^\| feature \|.*`).Find(kernels)
	for _, version := range regexp.MustCompile(`\| (\d+\.\d+)\b`).FindAllSubmatch(columns, -1) {
		if !strings.Contains(row["Linux"], string(version[1])) {
			t.Errorf("Linux %s is tested, and docs/versions.md says%s", version[1], row["Linux"])
		}
	}
}
