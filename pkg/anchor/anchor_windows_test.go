package anchor

import (
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/Microsoft/go-winio"
)

func TestAStrangerIsNotTakenForTheRuntime(t *testing.T) {
	for who, list := range map[string]string{
		"administrators": "O:BAD:(A;;GA;;;WD)",
		"guests":         "O:BGD:(A;;GA;;;WD)",
		"ours":           "", // Windows' default, which containerd also uses, if it runs by the same account
	} {
		t.Run(who, func(t *testing.T) {
			pipe := `\\.\pipe\cniscope-test-of-` + who
			l, err := winio.ListenPipe(pipe, &winio.PipeConfig{SecurityDescriptor: list})
			if err != nil {
				t.Skipf("it cannot be made here: %v", err)
			}
			defer l.Close()
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					defer c.Close()
				}
			}()
			if c, err := winio.DialPipe(pipe, nil); err == nil { // wine gives the listener's own instance to the first client
				_ = c.Close()
			}
			s := New()
			err = s.Ask(t.Context(), "npipe://"+pipe)
			if stranger := who == "guests"; stranger {
				if !errors.Is(err, ErrStranger) || len(s.List()) > 0 {
					t.Errorf("%v, %v", s.List(), err)
				}
			} else if err != nil || !slices.Contains(s.PIDs(), os.Getpid()) {
				t.Errorf("%v, %v", s.List(), err)
			}
		})
	}
}
