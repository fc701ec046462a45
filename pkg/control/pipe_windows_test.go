package control

import (
	"net"
	"strings"
	"testing"

	"github.com/Microsoft/go-winio"
	"golang.org/x/sys/windows"

	"github.com/cniscope/cniscope/test/harness"
)

// firstClient connects first: wine gives it the instance that only holds the name (go-winio's makeServerPipeHandle),
// which Windows leaves disconnected.
func firstClient(t *testing.T, dir string) {
	t.Helper()
	if c, err := winio.DialPipe(Address(dir), nil); err == nil {
		_ = c.Close()
	}
}

func TestAPipeIsNamedByItsFolder(t *testing.T) {
	const want = `\\.\pipe\cniscope.c:programdata:cniscope:run`
	for _, dir := range []string{`C:\ProgramData\cniscope\run`, `c:/programdata/cniscope\run\`} {
		harness.Equal(t, Address(dir), want, dir)
	}
	if Address(`C:\ProgramData\cniscope2`) == want {
		t.Error("another folder has the same pipe")
	}
}

func TestOnlyAdministratorsAndTheSystemMayOpenThePipe(t *testing.T) {
	dir := t.TempDir()
	l := harness.Must(Listen(dir))(t)
	defer l.Close()
	accept(l)
	firstClient(t, dir)
	c := harness.Must(winio.DialPipe(Address(dir), nil))(t)
	defer c.Close()
	security, err := windows.GetSecurityInfo(windows.Handle(c.(interface{ Fd() uintptr }).Fd()), windows.SE_KERNEL_OBJECT,
		windows.OWNER_SECURITY_INFORMATION|windows.DACL_SECURITY_INFORMATION)
	harness.Check(t, err)
	// Windows resolves GA of a pipe to FA, all access to a file; wine does not.
	got := strings.NewReplacer("0x1f01ff", "FA", ";GA;", ";FA;").Replace(security.String())
	harness.Says(t, got, "O:BA", "D:P", "(A;;FA;;;BA)", "(A;;FA;;;SY)")
	harness.Equal(t, strings.Count(got, "("), 2, "others may open it")
}

// accept accepts connections silently until l is closed.
func accept(l net.Listener) {
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
		}
	}()
}

// The creator of a pipe would receive administrators' requests and could answer anything.
func TestANameThatIsTakenIsNeitherServedNorAsked(t *testing.T) {
	for who, pipe := range map[string]string{
		"everybody's":         "O:WDD:(A;;GA;;;WD)",
		"a guest's":           "O:BGD:(A;;GA;;;WD)",
		"administrators' own": mayOpen,
	} {
		t.Run(who, func(t *testing.T) {
			dir := t.TempDir()
			squatter, err := winio.ListenPipe(Address(dir), &winio.PipeConfig{SecurityDescriptor: pipe})
			if err != nil {
				t.Skipf("it cannot be made here: %v", err)
			}
			defer squatter.Close()
			accept(squatter)
			firstClient(t, dir)
			if l, err := Listen(dir); err == nil {
				_ = l.Close()
				t.Error("it was served beside")
			} else if !strings.Contains(err.Error(), "another program has a pipe of this name") {
				t.Error(err)
			}
			c, err := connect(t.Context(), Address(dir))
			if err == nil {
				_ = c.Close()
			}
			switch {
			case pipe == mayOpen && err != nil:
				t.Errorf("an administrator's: %v", err)
			case pipe != mayOpen && (err == nil || !strings.Contains(err.Error(), "no administrator")):
				t.Errorf("it would be asked: %v", err)
			}
		})
	}
}

func TestANameIsFreeAgainWhenItsListenerIsClosed(t *testing.T) {
	dir := t.TempDir()
	for range 3 {
		l := harness.Must(Listen(dir))(t)
		_ = l.Close()
	}
}
