package private

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/windows"
)

// protected gives the system (SY) and administrators (BA) full, inherited access, others none.
const protected = "D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)"

// Dir opens dir and creates what is missing. A *Error names another account with write access.
func Dir(dir string) (*os.Root, error) {
	if err := makeFolder(dir); err != nil {
		return nil, err
	}
	if err := check(dir); err != nil {
		return nil, err
	}
	return os.OpenRoot(dir)
}

func makeFolder(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	if parent := filepath.Dir(dir); parent != dir {
		if err := makeFolder(parent); err != nil {
			return err
		}
	}
	security, err := windows.SecurityDescriptorFromString(protected)
	if err != nil {
		return err
	}
	path, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return err
	}
	attributes := windows.SecurityAttributes{SecurityDescriptor: security}
	attributes.Length = uint32(unsafe.Sizeof(attributes))
	if err := windows.CreateDirectory(path, &attributes); err != nil && !errors.Is(err, fs.ErrExist) {
		return &fs.PathError{Op: "mkdir", Path: dir, Err: err}
	}
	return nil
}

func check(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := way(dir); err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil || strings.EqualFold(real, dir) {
		return err
	}
	return way(real)
}

func way(dir string) error {
	for at := dir; ; at = filepath.Dir(at) {
		what, err := open(at, at != dir)
		if err != nil {
			return fmt.Errorf("asking who may write to %s: %w", at, err)
		}
		if what != "" {
			return &Error{at, what, "keep others out (icacls), or choose another folder"}
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}

func open(path string, onTheWay bool) (what string, err error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return "", err
	}
	h, err := windows.CreateFile(name, windows.READ_CONTROL,
		windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE,
		nil, windows.OPEN_EXISTING, windows.FILE_FLAG_BACKUP_SEMANTICS|windows.FILE_FLAG_OPEN_REPARSE_POINT, 0)
	if err != nil {
		return "", err
	}
	defer windows.CloseHandle(h) //nolint:errcheck // it was only asked
	return byHandle(h, onTheWay)
}

func byHandle(h windows.Handle, onTheWay bool) (what string, err error) {
	security, err := windows.GetSecurityInfo(h, windows.SE_FILE_OBJECT,
		windows.OWNER_SECURITY_INFORMATION|windows.DACL_SECURITY_INFORMATION)
	if err != nil {
		return "", err
	}
	owner, _, err := security.Owner()
	if err != nil {
		return "", err
	}
	us, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return "", err
	}
	list, _, err := security.DACL()
	if err != nil || list == nil { // full access for everyone
		return "may be written to by every account", nil
	}
	var all []access
	for i := range uint32(list.AceCount) {
		var ace *windows.ACCESS_ALLOWED_ACE
		if err := windows.GetAce(list, i, &ace); err != nil {
			return "", err
		}
		if ace.Header.AceType != windows.ACCESS_ALLOWED_ACE_TYPE {
			continue // it allows nothing
		}
		all = append(all, access{
			sid:   (*windows.SID)(unsafe.Pointer(&ace.SidStart)).String(),
			mask:  uint32(ace.Mask),
			later: ace.Header.AceFlags&windows.INHERIT_ONLY_ACE != 0,
		})
	}
	return exposed(owner.String(), us.User.Sid.String(), all, onTheWay), nil
}

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
