package onwindows

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"
	"golang.org/x/sys/windows/svc/mgr"
)

// Here is the machine that this program runs on.
type Here struct {
	// Notes are what the operator should know of what was done.
	Notes []string
}

// Folders returns where this machine has programs and their data. Windows is asked: whoever calls could have been
// given any environment.
func Folders() (o Options, err error) {
	if o.ProgramFiles, err = windows.KnownFolderPath(windows.FOLDERID_ProgramFiles, windows.KF_FLAG_DEFAULT); err == nil {
		o.ProgramData, err = windows.KnownFolderPath(windows.FOLDERID_ProgramData, windows.KF_FLAG_DEFAULT)
	}
	if err != nil {
		return Options{}, fmt.Errorf("asking Windows for its folders: %w", err)
	}
	return o, nil
}

// Where the registry has services' variables, and sources of events.
const (
	servicesKey = `SYSTEM\CurrentControlSet\Services\`
	sourcesKey  = servicesKey + `EventLog\Application\`
)

// kinds of events that a source has: errors, warnings and information (winnt.h, EVENTLOG_*).
const eventKinds = windows.EVENTLOG_ERROR_TYPE | windows.EVENTLOG_WARNING_TYPE | windows.EVENTLOG_INFORMATION_TYPE

// Read implements Node.
func (h *Here) Read(t Thing) (data []byte, err error) {
	switch t.Kind {
	case Folder:
		return readFolder(t.Name)
	case File:
		data, err = os.ReadFile(t.Name)
	case Service:
		return readService(t.Name)
	case EventSource:
		data, err = readValue(sourcesKey+t.Name, func(k registry.Key) ([]byte, error) {
			file, _, err := k.GetStringValue("EventMessageFile")
			return []byte(file + "\n"), err
		})
	case Environment:
		data, err = readValue(servicesKey+t.Name, readVariables)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

func readValue(key string, read func(registry.Key) ([]byte, error)) ([]byte, error) {
	k, err := registry.OpenKey(registry.LOCAL_MACHINE, key, registry.QUERY_VALUE)
	if err != nil {
		return nil, err
	}
	defer k.Close()
	return read(k)
}

const environmentValue = "Environment"

func readVariables(k registry.Key) ([]byte, error) {
	lines, _, err := k.GetStringsValue(environmentValue)
	if errors.Is(err, registry.ErrUnexpectedType) {
		return nil, fmt.Errorf("its %s is of another type than REG_MULTI_SZ: set it right first", environmentValue)
	}
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(lines, func(l string) bool { return strings.ContainsAny(l, "\n") }) {
		return nil, errors.New("a variable has two lines: set it elsewhere")
	}
	return []byte(strings.Join(append(lines, ""), "\n")), nil
}

func manager() (*mgr.Mgr, error) {
	m, err := mgr.Connect()
	if err != nil {
		return nil, fmt.Errorf("asking the service manager: %w", err)
	}
	return m, nil
}

func readService(name string) ([]byte, error) {
	m, err := manager()
	if err != nil {
		return nil, err
	}
	defer m.Disconnect() //nolint:errcheck // it was only asked
	s, err := m.OpenService(name)
	if errors.Is(err, windows.ERROR_SERVICE_DOES_NOT_EXIST) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer s.Close()
	is, err := configOf(s)
	if err != nil {
		return nil, err
	}
	if actions, err := s.RecoveryActions(); err == nil {
		for _, a := range actions {
			is.Restarts = append(is.Restarts, a.Delay.String())
		}
	}
	if seconds, err := s.ResetPeriod(); err == nil && seconds > 0 {
		is.Forgets = (time.Duration(seconds) * time.Second).String()
	}
	text, err := json.MarshalIndent(is, "", "  ")
	return append(text, '\n'), err
}

// configOf is what a service's configuration is but for what follows failures. mgr's Config asks more of it, which
// wine does not know.
func configOf(s *mgr.Service) (is ServiceConfig, err error) {
	ask := func(into func(buffer *byte, size uint32, needed *uint32) error) ([]byte, error) {
		buffer := make([]byte, 8<<10) // the most that there is (QueryServiceConfig)
		var needed uint32
		return buffer, into(&buffer[0], uint32(len(buffer)), &needed)
	}
	buffer, err := ask(func(buffer *byte, size uint32, needed *uint32) error {
		return windows.QueryServiceConfig(s.Handle, (*windows.QUERY_SERVICE_CONFIG)(unsafe.Pointer(buffer)), size, needed)
	})
	if err != nil {
		return is, err
	}
	c := (*windows.QUERY_SERVICE_CONFIG)(unsafe.Pointer(&buffer[0]))
	is = ServiceConfig{
		Runs: windows.UTF16PtrToString(c.BinaryPathName), Starts: starts[c.StartType],
		Account: windows.UTF16PtrToString(c.ServiceStartName), Name: windows.UTF16PtrToString(c.DisplayName),
	}
	described, err := ask(func(buffer *byte, size uint32, needed *uint32) error {
		return windows.QueryServiceConfig2(s.Handle, windows.SERVICE_CONFIG_DESCRIPTION, buffer, size, needed)
	})
	if d := (*windows.SERVICE_DESCRIPTION)(unsafe.Pointer(&described[0])); err == nil && d.Description != nil {
		is.Description = windows.UTF16PtrToString(d.Description)
	}
	return is, nil
}

// starts is when a service is started, as ServiceConfig has it.
var starts = map[uint32]string{mgr.StartAutomatic: "automatic", mgr.StartManual: "manual", mgr.StartDisabled: "disabled"}

// Write implements Node.
func (h *Here) Write(t Thing, data []byte) error {
	switch t.Kind {
	case Folder:
		return h.writeFolder(t.Name, data)
	case File:
		return h.writeFile(t.Name, data)
	case Service:
		return writeService(t.Name, data)
	case EventSource:
		return writeSource(t.Name, data)
	case Environment:
		return writeVariables(t.Name, data)
	}
	return fmt.Errorf("no such kind of thing: %s", t.Kind)
}

func writeSource(name string, data []byte) error {
	if data == nil {
		return gone(registry.DeleteKey(registry.LOCAL_MACHINE, sourcesKey+name))
	}
	k, _, err := registry.CreateKey(registry.LOCAL_MACHINE, sourcesKey+name, registry.SET_VALUE)
	if err != nil {
		return err
	}
	defer k.Close()
	return errors.Join(k.SetExpandStringValue("EventMessageFile", string(bytes.TrimSuffix(data, []byte("\n")))),
		k.SetDWordValue("TypesSupported", eventKinds))
}

func writeVariables(service string, data []byte) error {
	k, err := registry.OpenKey(registry.LOCAL_MACHINE, servicesKey+service, registry.SET_VALUE)
	if err != nil {
		return err
	}
	defer k.Close()
	if data == nil {
		return gone(k.DeleteValue(environmentValue))
	}
	return k.SetStringsValue(environmentValue, linesOf(data))
}

func writeService(name string, data []byte) error {
	m, err := manager()
	if err != nil {
		return err
	}
	defer m.Disconnect() //nolint:errcheck // what was done is done
	s, err := m.OpenService(name)
	if err != nil && !errors.Is(err, windows.ERROR_SERVICE_DOES_NOT_EXIST) {
		return err
	}
	if data == nil {
		if err != nil {
			return nil
		}
		defer s.Close()
		return s.Delete()
	}
	var to ServiceConfig
	if err := json.Unmarshal(data, &to); err != nil {
		return fmt.Errorf("its configuration: %w", err)
	}
	c := mgr.Config{
		ServiceType: windows.SERVICE_WIN32_OWN_PROCESS, ErrorControl: mgr.ErrorNormal, BinaryPathName: to.Runs,
		ServiceStartName: to.Account, DisplayName: to.Name, Description: to.Description,
	}
	for kind, text := range starts {
		if text == to.Starts {
			c.StartType = kind
		}
	}
	if err != nil {
		s, err = createService(m, name, c)
	} else {
		err = s.UpdateConfig(c)
	}
	if err != nil {
		return err
	}
	defer s.Close()
	return restartAfterFailures(s, to)
}

// createService: mgr.CreateService would quote the command line, arguments and all.
func createService(m *mgr.Mgr, name string, c mgr.Config) (*mgr.Service, error) {
	program, arguments := c.BinaryPathName, []string(nil)
	if parts, err := windows.DecomposeCommandLine(c.BinaryPathName); err == nil && len(parts) > 0 {
		program, arguments = parts[0], parts[1:]
	}
	return m.CreateService(name, program, c, arguments...)
}

// restartAfterFailures has the service manager start it again, also where it ended with an error code.
func restartAfterFailures(s *mgr.Service, to ServiceConfig) error {
	var actions []mgr.RecoveryAction
	for _, text := range to.Restarts {
		delay, err := time.ParseDuration(text)
		if err != nil {
			return err
		}
		actions = append(actions, mgr.RecoveryAction{Type: mgr.ServiceRestart, Delay: delay})
	}
	if len(actions) == 0 {
		return nil
	}
	forget, err := time.ParseDuration(to.Forgets)
	if err != nil {
		return err
	}
	if err := s.SetRecoveryActions(actions, uint32(forget/time.Second)); err != nil {
		return err
	}
	// Without it only crashes count. wine does not have it.
	if err := s.SetRecoveryActionsOnNonCrashFailures(true); !errors.Is(err, windows.ERROR_INVALID_LEVEL) {
		return err
	}
	return nil
}
