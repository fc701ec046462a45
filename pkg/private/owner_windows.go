package private

import (
	"fmt"

	"golang.org/x/sys/windows"
)

// Owned returns an error if an open object, as a pipe, belongs to another than administrators, the system or the
// account that we run as: who has made it may be anybody.
func Owned(h windows.Handle) error {
	security, err := windows.GetSecurityInfo(h, windows.SE_KERNEL_OBJECT, windows.OWNER_SECURITY_INFORMATION)
	if err != nil {
		return fmt.Errorf("asking whose it is: %w", err)
	}
	owner, _, err := security.Owner()
	if err != nil {
		return fmt.Errorf("asking whose it is: %w", err)
	}
	us, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return fmt.Errorf("asking who we are: %w", err)
	}
	if almighty[owner.String()] || owner.Equals(us.User.Sid) {
		return nil
	}
	return fmt.Errorf("it belongs to %s, who is no administrator", nameOf(owner))
}

// nameOf is how people know an account.
func nameOf(sid *windows.SID) string {
	if account, domain, _, err := sid.LookupAccount(""); err == nil {
		return domain + `\` + account
	}
	return sid.String()
}
