package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

// Where there is nothing to show it is said why, and what there is instead; who reads a document or a
// page gets one.
func TestWhereThereIsNothingToShow(t *testing.T) {
	recording := harness.Must(os.ReadFile(threePods))(t)
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		harness.Check(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	header, _, _ := strings.Cut(string(recording), "\n")
	empty, none := file("empty.rec", ""), file("header.rec", header+"\n")
	half, other := file("half.rec", string(recording[:len(recording)/2])), file("other.rec", "hello\n")
	const pods = "no call of pod nobody in this recording; it has calls of shop/web-0, shop/slow-0, shop/broken-0"
	for args, want := range map[string]struct {
		code      int
		says, out string
	}{
		threePods + " --pod nobody":               {1, pods, ""},
		threePods + " --pod nobody --html":        {1, pods, ""},
		threePods + " --pod nobody --max-call 1s": {2, pods, ""},
		threePods + " --pod web-0 --problems":     {0, "nothing of pod web-0 was slow, failed or partly unseen in this recording", ""},
		none:                                      {0, "there is no CNI call in this recording", ""},
		none + " --summary":                       {0, "there is no CNI call in this recording", ""},
		none + " --summary --format json":         {0, "there is no CNI call in this recording", `"calls": 0`},
		none + " --html":                          {0, "there is no CNI call in this recording", "No CNI call was recorded"},
		none + " --max-call 1s":                   {2, "there is no call to compare with the limits", ""},
		empty:                                     {1, "it is empty; make a recording with `cniscope record FILE`", ""},
		other:                                     {1, "it does not begin with a recording's header", ""},
		half:                                      {3, "the recording ends within a line (its writer was killed, or the copy is incomplete); only complete lines were read\n", "6 calls of 2 pods"},
		filepath.Join(dir, "nowhere"):             {1, "no such file", ""},
		threePods + " --html --pod web-0":         {0, "", "CNI DEL"},
		threePods + " --html --pod web-0 --problems": {0, "", "Nothing was slow"},
	} {
		out, diagnostics, err := cniscope(t, append([]string{"show"}, strings.Fields(args)...)...)
		said := diagnostics
		code := 0
		if err != nil {
			code, said = exitCode(err), said+err.Error()
		}
		if code != want.code || !strings.Contains(said, want.says) || !strings.Contains(out, want.out) || want.out == "" && out != "" {
			t.Errorf("%s: %d, %q, %d bytes; want %d, %q, %q", args, code, said, len(out), want.code, want.says, want.out)
		}
	}
}
