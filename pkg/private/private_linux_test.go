package private

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

// A uid that is neither ours nor root's.
const nobody = 65534

// build creates directories ("name") and links ("name -> to", where TOP is their parent), with the changes behind the
// name, and returns their parent.
func build(t *testing.T, entries ...string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: gives files away")
	}
	top, err := filepath.EvalSymlinks(t.TempDir())
	harness.Check(t, err)
	for _, e := range entries {
		words := strings.Fields(e)
		path := filepath.Join(top, words[0])
		if len(words) > 2 && words[1] == "->" {
			err = os.Symlink(strings.ReplaceAll(words[2], "TOP", top), path)
		} else {
			err = os.MkdirAll(path, 0o755)
		}
		for _, w := range words[1:] {
			switch w {
			case "nobody":
				err = errors.Join(err, os.Lchown(path, nobody, nobody))
			case "777":
				err = errors.Join(err, os.Chmod(path, 0o777))
			case "775":
				err = errors.Join(err, os.Chmod(path, 0o775))
			case "sticky":
				err = errors.Join(err, os.Chmod(path, 0o777|os.ModeSticky))
			}
		}
		harness.Check(t, err)
	}
	return top
}

func TestAFolderIsOursWithTheWholeWayToIt(t *testing.T) {
	for name, test := range map[string]struct {
		entries []string
		dir     string
		wrong   string // "" if it is safe
	}{
		"one of root's":                        {[]string{"a"}, "a", ""},
		"one that is missing, with its parent": {[]string{"a"}, "a/b/c", ""},
		"below everybody's, with a sticky bit": {[]string{"tmp sticky", "tmp/ours"}, "tmp/ours", ""},
		"through a link of root's":             {[]string{"real", "var -> real"}, "var/x", ""},
		"through a link that goes up":          {[]string{"a", "real", "a/up -> ../real"}, "a/up/x", ""},
		"somebody else's":                      {[]string{"a nobody"}, "a", "belongs to uid 65534"},
		"below somebody else's":                {[]string{"a nobody", "a/b"}, "a/b", "belongs to uid 65534"},
		"one to make below somebody else's":    {[]string{"a nobody"}, "a/b", "belongs to uid 65534"},
		"everybody's":                          {[]string{"a 777"}, "a", "may be written to by others (mode 0777)"},
		"a group's":                            {[]string{"a 775"}, "a", "may be written to by others (mode 0775)"},
		"below everybody's":                    {[]string{"a 777", "a/b"}, "a/b", "may be written to by others"},
		"everybody's, with a sticky bit":       {[]string{"tmp sticky"}, "tmp", "may be written to by others"},
		"somebody's in everybody's":            {[]string{"tmp sticky", "tmp/x nobody"}, "tmp/x", "belongs to uid 65534"},
		"through somebody's link": {
			[]string{"real", "tmp sticky", "tmp/x -> TOP/real nobody"},
			"tmp/x",
			"belongs to uid 65534",
		},
		"through a link into somebody's": {[]string{"a nobody", "x -> a"}, "x/b", "belongs to uid 65534"},
		"links in a circle":              {[]string{"x -> y", "y -> x"}, "x", "too many levels"},
	} {
		t.Run(name, func(t *testing.T) {
			top := build(t, test.entries...)
			root, err := Dir(filepath.Join(top, test.dir))
			if err == nil {
				defer root.Close()
			}
			if test.wrong == "" && err != nil || test.wrong != "" && (err == nil || !strings.Contains(err.Error(), test.wrong)) {
				t.Fatalf("%v, want %q", err, test.wrong)
			}
		})
	}
}

func TestNothingIsMadeBelowWhatIsNotOurs(t *testing.T) {
	top := build(t, "a nobody")
	if _, err := Dir(filepath.Join(top, "a/b")); err == nil {
		t.Error("it was taken")
	}
	if _, err := os.Lstat(filepath.Join(top, "a/b")); err == nil {
		t.Error("it was made")
	}
}

func TestAFolderThatIsMadeIsItsOwnersAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a")
	root := harness.Must(Dir(dir))(t)
	defer root.Close()
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestAFileThatOthersCouldHaveOpenIsRefused(t *testing.T) {
	dir := t.TempDir()
	for name, test := range map[string]struct {
		change func(path string) error
		wrong  string
	}{
		"ours":              {func(string) error { return nil }, ""},
		"readable":          {func(p string) error { return os.Chmod(p, 0o640) }, "may be opened by others (mode 0640)"},
		"with another name": {func(p string) error { return os.Link(p, p+" too") }, "has 2 names"},
		"somebody else's":   {func(p string) error { return os.Chown(p, nobody, nobody) }, "belongs to uid 65534"},
	} {
		t.Run(name, func(t *testing.T) {
			f := harness.Must(os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_RDWR, 0o600))(t)
			defer f.Close()
			if err := test.change(f.Name()); errors.Is(err, os.ErrPermission) {
				t.Skip(err)
			}
			if err := File(f); test.wrong == "" && err != nil || test.wrong != "" &&
				(err == nil || !strings.Contains(err.Error(), test.wrong)) {
				t.Errorf("%v, want %q", err, test.wrong)
			}
		})
	}
}
