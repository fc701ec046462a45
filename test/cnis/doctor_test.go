//go:build linux

package cnis

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"slices"
	"strings"

	"github.com/cniscope/cniscope/pkg/doctor"
	"github.com/cniscope/cniscope/test/scope"
)

func (n *node) examine() doctor.Report {
	n.Helper()
	cmd := exec.CommandContext(n.ctx, program, "doctor", "--config", n.options(), "--format", "json")
	var out, trouble bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &trouble
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		n.Fatal(err)
	}
	var report doctor.Report
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		n.Fatalf("%v\n%s%s", err, out.String(), trouble.String())
	}
	return report
}

var environment = []string{"otlp", "clock", "kernel", "nri"}

func (n *node) silent() {
	n.Helper()
	for _, f := range n.examine().Findings {
		if f.Level != doctor.Note && !slices.Contains(environment, f.Check) {
			n.Errorf("doctor is not silent: %s", told(f))
		}
	}
}

func (n *node) finds(check string, says ...string) doctor.Finding {
	n.Helper()
	var found []doctor.Finding
	for _, f := range n.examine().Findings {
		if f.Check == check {
			found = append(found, f)
		}
	}
	for _, f := range found {
		if !slices.ContainsFunc(says, func(what string) bool { return !strings.Contains(told(f), what) }) {
			return f
		}
	}
	all := make([]string, len(found))
	for i, f := range found {
		all[i] = told(f)
	}
	n.Errorf("%s does not say all of %q:\n%s", check, says, strings.Join(all, "\n"))
	return doctor.Finding{}
}

func told(f doctor.Finding) string {
	return string(f.Level) + " " + f.Check + ": " + f.Summary + "\n" + strings.Join(f.Evidence, "\n") + "\nremedy: " + strings.Join(f.Remedy, "\n")
}

func (n *node) options() string {
	if n.scope != nil {
		return n.scope.Config()
	}
	return n.file("cniscope.toml", scope.Leads(n.rig, nodeName, true))
}

func (n *node) quiet(checks ...string) {
	n.Helper()
	report := n.examine()
	for _, f := range report.Findings {
		if f.Level != doctor.Note && slices.Contains(checks, f.Check) {
			n.Errorf("%s is not silent: %s", f.Check, told(f))
		}
	}
	for _, c := range report.Checks {
		if slices.Contains(checks, c.Name) && c.State == doctor.Unchecked {
			n.Errorf("%s was not made: %s", c.Name, c.Reason)
		}
	}
}
