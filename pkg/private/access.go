package private

import "fmt"

// access is one allowing entry of a Windows access control list.
type access struct {
	sid  string
	mask uint32
	// later: it applies only to files below the directory.
	later bool
}

// The rights that matter (winnt.h).
const (
	writeData   = 0x2  // create a file in a directory
	appendData  = 0x4  // create a directory in a directory
	deleteChild = 0x40 // remove other accounts' files from a directory
	remove      = 0x10000
	writeDAC    = 0x40000
	writeOwner  = 0x80000
	genericAll  = 0x10000000
	genericFull = 0x40000000 // GENERIC_WRITE
	maximum     = 0x02000000 // MAXIMUM_ALLOWED
)

const (
	// replaces are the rights that allow another account to replace a directory's content.
	replaces = deleteChild | remove | writeDAC | writeOwner | genericAll | maximum
	// changes are the rights that allow another account to add or replace content.
	changes = replaces | writeData | appendData | genericFull
)

// Accounts with full rights on the machine, and Windows' installer, which owns its directories. See
// https://learn.microsoft.com/en-us/windows-server/identity/ad-ds/manage/understand-security-identifiers
var almighty = map[string]bool{
	"S-1-5-18":     true, // SYSTEM
	"S-1-5-32-544": true, // Administrators
	"S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464": true, // TrustedInstaller
}

// creatorOwner stands in inherited entries for the creator of a file.
const creatorOwner = "S-1-3-0"

// exposed reports who else can add or replace content of a directory; empty if no other account can. own is the
// account of this process. In a directory on the way, other accounts may add entries.
func exposed(owner, own string, list []access, onTheWay bool) string {
	trusted := func(sid string) bool { return almighty[sid] || sid == own }
	if !trusted(owner) {
		return fmt.Sprintf("belongs to %s", owner)
	}
	for _, a := range list {
		rights := uint32(changes)
		if onTheWay {
			rights = replaces
		}
		switch {
		case trusted(a.sid), a.mask&rights == 0:
		case a.later && (onTheWay || a.sid == creatorOwner):
		default:
			return fmt.Sprintf("may be written to by %s (rights %#x)", a.sid, a.mask)
		}
	}
	return ""
}
