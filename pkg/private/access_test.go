package private

import (
	"strings"
	"testing"
)

const (
	system, admins, users, me, other = "S-1-5-18", "S-1-5-32-544", "S-1-5-32-545", "S-1-5-21-1-2-3-500", "S-1-5-21-1-2-3-1001"
	full, reads                      = 0x1f01ff, 0x1200a9
)

func TestWhoCanWriteToAFolderOfWindows(t *testing.T) {
	protected := []access{{system, full, false}, {admins, full, false}}
	programData := append([]access{{creatorOwner, genericAll, true}, {users, reads, false}, {users, 0x116, false}},
		protected...)
	drive := append([]access{{users, reads, false}, {users, 0x4, false}, {"S-1-5-11", 0xe0010000, true}}, protected...)
	for name, test := range map[string]struct {
		owner    string
		list     []access
		onTheWay bool
		wrong    string
	}{
		"ours":                        {admins, protected, false, ""},
		"our account's":               {me, append(protected, access{me, full, false}), false, ""},
		"somebody's":                  {other, protected, false, "belongs to " + other},
		"C:\\ProgramData, on the way": {system, programData, true, ""},
		"C:\\ProgramData":             {system, programData, false, "may be written to by " + users},
		"C:\\, on the way":            {"S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464", drive, true, ""},
		"users may read":              {admins, append(protected, access{users, reads, false}), false, ""},
		"users may later write": {
			admins, append(protected, access{users, writeData, true}), false,
			"may be written to by " + users,
		},
		"anybody may take it away": {
			admins, append(protected, access{"S-1-1-0", deleteChild, false}), true,
			"may be written to by S-1-1-0",
		},
	} {
		if got := exposed(test.owner, me, test.list, test.onTheWay); test.wrong == "" && got != "" ||
			!strings.HasPrefix(got, test.wrong) {
			t.Errorf("%s: %q, want %q", name, got, test.wrong)
		}
	}
}
