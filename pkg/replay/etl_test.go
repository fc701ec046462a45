package replay

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/pipeline"
	"github.com/cniscope/cniscope/pkg/record"
	"github.com/cniscope/cniscope/pkg/settings"
	"github.com/cniscope/cniscope/test/etwtest"
	"github.com/cniscope/cniscope/test/harness"
)

// Whatever is a trace is drawn, or refused with a reason.
func FuzzTrace(f *testing.F) {
	n := etwtest.Seed()
	n.Log(95, "RunPodSandbox for &PodSandboxMetadata{Name:db,Uid:u1,Namespace:shop,Attempt:0,}", "")
	n.Log(9600, "RunPodSandbox for &PodSandboxMetadata{Name:db,Uid:u1,Namespace:shop,Attempt:0,} failed, error",
		`sandbox "e36af093c59191cbb1d34875fb0a27cb"`)
	file := n.File()
	f.Add(file.Bytes())
	file.Compress, file.Size = false, 8192
	f.Add(file.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		trace := &windowsTrace{}
		made, err := trace.recording(bufio.NewReader(bytes.NewReader(data)))
		if err != nil || made == nil {
			return
		}
		r := harness.Must(record.NewReader(made))(t)
		s, said, err := settings.In(r.Header())
		if err != nil || len(said) > 0 {
			t.Fatal(said, err)
		}
		operations := 0
		err = Each(t.Context(), r, s, func(result pipeline.Result) error {
			if _, is := result.(*pipeline.Judged); is {
				operations++
			}
			return nil
		})
		if bound := (*record.BoundError)(nil); err != nil && !errors.As(err, &bound) {
			t.Fatal(err)
		}
	})
}

func TestGapsOfATraceAreSaid(t *testing.T) {
	file := etwtest.Seed().File()
	file.EventsLost, file.BuffersLost = 5, 6
	path := filepath.Join(t.TempDir(), "incident.etl")
	harness.Check(t, os.WriteFile(path, file.Bytes(), 0o600))
	r := harness.Must(Load(t.Context(), path, Options{}))(t)
	defer r.Close()
	const gaps = "Windows lost 5 events and 6 buffers, and 0 buffers are unreadable"
	harness.Says(t, strings.Join(r.Remarks(), "\n"), gaps)
	harness.Says(t, r.Incomplete().Error(), gaps)
}
