package winproc

import (
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/windows/etw"
)

// NewSystem returns the real Windows.
func NewSystem() System { return &system{buffer: make([]uint64, 64<<10/8)} }

type system struct {
	buffer  []uint64 // in words, for alignment
	entries []Entry
}

func (*system) Clocks() (mono, wall int64) { return clock.Anchor() }

// Processes implements System. It lasts about 1 ms with 300 processes.
func (s *system) Processes() ([]Entry, error) {
	for {
		var need uint32
		size := uint32(len(s.buffer) * 8)
		err := windows.NtQuerySystemInformation(windows.SystemProcessInformation, unsafe.Pointer(&s.buffer[0]), size, &need)
		if errors.Is(err, windows.STATUS_INFO_LENGTH_MISMATCH) || errors.Is(err, windows.STATUS_BUFFER_TOO_SMALL) {
			s.buffer = make([]uint64, (max(need, size)+size/2)/8) // with room for new ones
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("NtQuerySystemInformation: %w", err)
		}
		return s.parse(), nil
	}
}

// unset is Wine's creation time before the program starts (uninitialized memory, mem_alloc of server/object.c). Time
// and name change later.
const unset Filetime = 0x5555555555555555

func (s *system) parse() []Entry {
	s.entries = s.entries[:0]
	for at := unsafe.Pointer(&s.buffer[0]); ; {
		p := (*windows.SYSTEM_PROCESS_INFORMATION)(at)
		e := Entry{
			PID: uint32(p.UniqueProcessID), Parent: uint32(p.InheritedFromUniqueProcessID),
			Created: Filetime(p.CreateTime),
		}
		if p.ImageName.Buffer != nil {
			e.Name = p.ImageName.String()
		}
		if e.PID != 0 && e.Created != unset {
			s.entries = append(s.entries, e)
		}
		if p.NextEntryOffset == 0 {
			return s.entries
		}
		at = unsafe.Add(at, p.NextEntryOffset)
	}
}

type process windows.Handle

func (*system) Open(pid uint32) (Process, error) {
	const rights = windows.PROCESS_QUERY_LIMITED_INFORMATION | windows.SYNCHRONIZE
	h, err := windows.OpenProcess(rights|windows.PROCESS_VM_READ, false, pid)
	if err != nil { // a protected process's memory is unreadable
		if h, err = windows.OpenProcess(rights, false, pid); err != nil {
			return nil, fmt.Errorf("OpenProcess: %w", err)
		}
	}
	return process(h), nil
}

func (p process) Close() { _ = windows.CloseHandle(windows.Handle(p)) }

func filetime(f windows.Filetime) Filetime {
	return Filetime(f.HighDateTime)<<32 | Filetime(f.LowDateTime)
}

func (p process) times() (created, ended Filetime, cpu int64, err error) {
	var c, e, k, u windows.Filetime
	err = windows.GetProcessTimes(windows.Handle(p), &c, &e, &k, &u)
	return filetime(c), filetime(e), int64(filetime(k)+filetime(u)) * 100, err
}

func (p process) Created() (Filetime, error) {
	created, _, _, err := p.times()
	return created, err
}

func (p process) basic() (b windows.PROCESS_BASIC_INFORMATION, err error) {
	err = windows.NtQueryInformationProcess(windows.Handle(p), windows.ProcessBasicInformation, unsafe.Pointer(&b),
		uint32(unsafe.Sizeof(b)), nil)
	return b, err
}

func (p process) Parent() (uint32, error) {
	b, err := p.basic()
	return uint32(b.InheritedFromUniqueProcessId), err
}

func (p process) File() (string, error) {
	var path [windows.MAX_LONG_PATH]uint16
	n := uint32(len(path))
	if err := windows.QueryFullProcessImageName(windows.Handle(p), 0, &path[0], &n); err != nil {
		return "", err
	}
	return windows.UTF16ToString(path[:n]), nil
}

func (p process) Ended() (e End, over bool) {
	if r, err := windows.WaitForSingleObject(windows.Handle(p), 0); err != nil || r != windows.WAIT_OBJECT_0 {
		return e, false
	}
	var err error
	if _, e.At, e.CPU, err = p.times(); err != nil {
		return e, false
	}
	if etw.Wine() { // it returns the caller's times
		e.CPU = 0
	}
	_ = windows.GetExitCodeProcess(windows.Handle(p), &e.Code)
	return e, true
}

// containers prefixes containers' users: S-1-5-93-2-1 is ContainerAdministrator, -2 ContainerUser.
const containers = "S-1-5-93-"

// ofTheNode reports whether a process is in the services' session or ours. A container has its own session and SYSTEM.
func (p process) ofTheNode() bool {
	pid, err := windows.GetProcessId(windows.Handle(p))
	if err != nil {
		return false
	}
	var its, ours uint32
	if windows.ProcessIdToSessionId(pid, &its) != nil {
		return false
	}
	if its == services {
		return true
	}
	return windows.ProcessIdToSessionId(windows.GetCurrentProcessId(), &ours) == nil && its == ours
}

// services is the services' session:
// https://learn.microsoft.com/en-us/windows/win32/services/service-changes-for-windows-vista.
const services = 0

func (p process) Privileged() bool {
	if !p.ofTheNode() {
		return false
	}
	var token windows.Token
	if windows.OpenProcessToken(windows.Handle(p), windows.TOKEN_QUERY, &token) != nil {
		return false
	}
	defer func() { _ = token.Close() }()
	user, err := token.GetTokenUser()
	if err != nil || strings.HasPrefix(user.User.Sid.String(), containers) {
		return false
	}
	// Wine's one user may do everything.
	return user.User.Sid.IsWellKnown(windows.WinLocalSystemSid) || token.IsElevated() || etw.Wine()
}

func (p process) Block() (address uint64, narrow bool, err error) {
	var small uintptr
	err = windows.NtQueryInformationProcess(windows.Handle(p), windows.ProcessWow64Information, unsafe.Pointer(&small),
		uint32(unsafe.Sizeof(small)), nil)
	if err == nil && small != 0 {
		return uint64(small), true, nil
	}
	b, err := p.basic()
	return uint64(uintptr(unsafe.Pointer(b.PebBaseAddress))), unsafe.Sizeof(uintptr(0)) == 4, err
}

func (p process) Read(address uint64, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	var n uintptr
	err := windows.ReadProcessMemory(windows.Handle(p), uintptr(address), &b[0], uintptr(len(b)), &n)
	if err == nil && n < uintptr(len(b)) {
		err = windows.ERROR_PARTIAL_COPY
	}
	return err
}
