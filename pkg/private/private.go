// Package private creates and checks directories that only this user and root can write. It checks the whole path,
// since owners of parents and links decide where it leads.
package private

import "fmt"

// Error describes an unsafe directory.
type Error struct {
	Path         string
	What, Remedy string
}

func (e *Error) Error() string { return fmt.Sprintf("%s %s: %s", e.Path, e.What, e.Remedy) }

type access struct {
	sid  string
	mask uint32
	// later: only for inherited rights
	later bool
}

// winnt.h
const (
	writeData   = 0x2  // create a file
	appendData  = 0x4  // create a directory
	deleteChild = 0x40 // remove other accounts' files
	remove      = 0x10000
	writeDAC    = 0x40000
	writeOwner  = 0x80000
	genericAll  = 0x10000000
	genericFull = 0x40000000 // GENERIC_WRITE
	maximum     = 0x02000000 // MAXIMUM_ALLOWED
)

const (
	replaces = deleteChild | remove | writeDAC | writeOwner | genericAll | maximum
	changes  = replaces | writeData | appendData | genericFull
)

// Windows' installer owns Windows' directories. See
// https://learn.microsoft.com/en-us/windows-server/identity/ad-ds/manage/understand-security-identifiers
var almighty = map[string]bool{
	"S-1-5-18":     true, // SYSTEM
	"S-1-5-32-544": true, // Administrators
	"S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464": true, // TrustedInstaller
}

// creatorOwner is a file's creator in inherited entries.
const creatorOwner = "S-1-3-0"

// exposed names other accounts that can replace content, or add to it unless on the way.
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
