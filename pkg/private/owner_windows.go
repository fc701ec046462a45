package private

import (
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Owned returns an error unless administrators, the system, or we own an open object.
func Owned(h windows.Handle) error {
	security, err := windows.GetSecurityInfo(h, windows.SE_KERNEL_OBJECT, windows.OWNER_SECURITY_INFORMATION)
	if err != nil {
		return fmt.Errorf("asking whose it is: %w", err)
	}
	owner, _, err := security.Owner()
	if err != nil {
		return fmt.Errorf("asking whose it is: %w", err)
	}
	if almighty[owner.String()] {
		return nil
	}
	if us, err := ours(); err != nil {
		return fmt.Errorf("asking who we are: %w", err)
	} else if slices.Contains(us, owner.String()) {
		return nil
	}
	return fmt.Errorf("it belongs to %s, who is no administrator", nameOf(owner))
}

// ours returns our account and our objects' owner, which may be a group.
func ours() ([]string, error) {
	token := windows.GetCurrentProcessToken()
	user, err := token.GetTokenUser()
	if err != nil {
		return nil, err
	}
	var owner struct { // TOKEN_OWNER and SID, up to 68 bytes (SECURITY_MAX_SID_SIZE)
		sid  *windows.SID
		room [68]byte
	}
	var size uint32
	if err := windows.GetTokenInformation(token, windows.TokenOwner, (*byte)(unsafe.Pointer(&owner)),
		uint32(unsafe.Sizeof(owner)), &size); err != nil {
		return nil, err
	}
	return []string{user.User.Sid.String(), owner.sid.String()}, nil
}

func nameOf(sid *windows.SID) string {
	if account, domain, _, err := sid.LookupAccount(""); err == nil {
		return domain + `\` + account
	}
	return sid.String()
}
