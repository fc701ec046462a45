package private

import "fmt"

// access is one entry of an access control list of Windows, which allows something.
type access struct {
	sid  string
	mask uint32
	// later: it is for what is made below a folder, not for the folder.
	later bool
}

// The rights that matter (winnt.h).
const (
	writeData   = 0x2  // make a file in a folder
	appendData  = 0x4  // make a folder in a folder
	deleteChild = 0x40 // remove what somebody else has in a folder
	remove      = 0x10000
	writeDAC    = 0x40000
	writeOwner  = 0x80000
	genericAll  = 0x10000000
	genericFull = 0x40000000 // GENERIC_WRITE
	maximum     = 0x02000000 // MAXIMUM_ALLOWED
)

const (
	// replaces are the rights by which another can put something in the place of what lies in a folder.
	replaces = deleteChild | remove | writeDAC | writeOwner | genericAll | maximum
	// changes are those by which another can put something beside it.
	changes = replaces | writeData | appendData | genericFull
)

// The accounts that may do everything anyway, and Windows' own installer, to whom its folders belong. See
// https://learn.microsoft.com/en-us/windows-server/identity/ad-ds/manage/understand-security-identifiers
var almighty = map[string]bool{
	"S-1-5-18":     true, // SYSTEM
	"S-1-5-32-544": true, // Administrators
	"S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464": true, // TrustedInstaller
}

// creatorOwner stands for whoever makes something, in what is handed down.
const creatorOwner = "S-1-3-0"

// exposed says who else can change what lies in a folder, or replace it; empty if nobody can. own is the account
// that we run as. On the way to the folder others may have things of their own beside it.
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
