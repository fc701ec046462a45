package install

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/cniscope/cniscope/pkg/runtime"
)

// Version is a containerd version and its source.
type Version struct {
	Text  string
	Major int
	minor int // -1 if unknown
	From  string
}

func (v Version) hasNRI() bool { return v.Major > 1 || v.minor < 0 || v.minor >= 7 }

var versionForm = regexp.MustCompile(`^v?([0-9]+)(?:\.([0-9]+)\S*)?$`)

func parseVersion(text, from string) (Version, error) {
	m := versionForm.FindStringSubmatch(text)
	if m == nil {
		return Version{}, fmt.Errorf("%q is no version of containerd (%s): want one as 2.4.2 or 1.7", text, from)
	}
	v := Version{Text: strings.TrimPrefix(text, "v"), minor: -1, From: from}
	var err error
	if v.Major, err = strconv.Atoi(m[1]); err == nil && m[2] != "" {
		v.minor, err = strconv.Atoi(m[2])
	}
	return v, err
}

var errVersion = errors.New("cannot find containerd's version")

const remembered = "as given before"

func (t tree) version(ctx context.Context, o Options, m *manifest, c *configuration) (Version, error) {
	if o.ContainerdVersion != "" {
		return parseVersion(o.ContainerdVersion, "--containerd-version")
	}
	silent := o.config() + " does not exist"
	if t.live() {
		r, err := runtime.Ask(ctx, c.address())
		switch {
		case err == nil && r.Name == runtime.Containerd:
			return parseVersion(r.Version, c.address())
		case err == nil:
			silent = c.address() + " belongs to " + r.Name + "; " + silent
		case strings.Contains(err.Error(), c.address()):
			silent = err.Error() + "; " + silent
		default:
			silent = c.address() + ": " + err.Error() + "; " + silent
		}
	}
	if told := m.Choice.ContainerdVersion; told != "" {
		return parseVersion(told, remembered)
	}
	switch v := c.version(); {
	case v > 2:
		return Version{Text: "2", Major: 2, minor: -1, From: fmt.Sprintf("its configuration has version %d", v)}, nil
	case len(c.files) > 0:
		// Both read it, and the older one's settings suit the newer.
		return Version{Text: "1.7", Major: 1, minor: 7, From: fmt.Sprintf("its configuration has version %d", v)}, nil
	}
	return Version{}, fmt.Errorf("%w: %s", errVersion, silent)
}
