package private

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/windows"

	"github.com/cniscope/cniscope/test/harness"
)

func TestAFolderThatIsMadeIsAdministratorsAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	root, err := Dir(dir)
	harness.Check(t, err)
	_ = root.Close()
	security, err := windows.GetNamedSecurityInfo(dir, windows.SE_FILE_OBJECT, windows.DACL_SECURITY_INFORMATION)
	harness.Check(t, err)
	for _, who := range []string{";;;BU)", ";;;WD)", ";;;AU)"} {
		if strings.Contains(security.String(), who) {
			t.Errorf("others have a part in it: %s", security)
		}
	}
}

func TestAFolderOfEverybodysIsRefused(t *testing.T) {
	for name, list := range map[string]string{
		"everybody's":  "D:P(A;OICI;FA;;;WD)",
		"the users'":   protected + "(A;OICI;0x2;;;BU)",
		"without list": "",
	} {
		dir := filepath.Join(t.TempDir(), "a")
		harness.Check(t, makeFolder(dir))
		var dacl *windows.ACL
		if list != "" {
			security, err := windows.SecurityDescriptorFromString(list)
			harness.Check(t, err)
			if dacl, _, err = security.DACL(); err != nil {
				t.Fatal(err)
			}
		}
		if err := windows.SetNamedSecurityInfo(dir, windows.SE_FILE_OBJECT, windows.DACL_SECURITY_INFORMATION, nil, nil,
			dacl, nil); err != nil {
			t.Skipf("no list can be set here: %v", err)
		}
		if now, err := windows.GetNamedSecurityInfo(dir, windows.SE_FILE_OBJECT,
			windows.DACL_SECURITY_INFORMATION); err == nil && list != "" && !strings.Contains(now.String(),
			list[strings.LastIndex(list, ";"):]) {
			t.Logf("%s: no such list can be set here: %s", name, now) // wine has Unix' modes
			continue
		}
		var refused *Error
		if root, err := Dir(dir); err == nil {
			t.Errorf("%s was opened", name)
			_ = root.Close()
		} else if !errors.As(err, &refused) {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.Remove(dir); err != nil {
			t.Log(err)
		}
	}
}
