//go:build linux

package files

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
)

// honest repeats a recording of three pods, with other processes, sandboxes and times in each copy.
func honest() func(io.Writer, int) {
	text, err := os.ReadFile("../../examples/recordings/three-pods.rec")
	if err != nil {
		return func(io.Writer, int) { panic(err) }
	}
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	changed := regexp.MustCompile(`"t":\d+|"start(ed)?":\d+|"\d+@\d+"|\b[0-9a-f]{64}\b`)
	const round = 120_000_000_000
	return func(w io.Writer, n int) {
		if n == 0 {
			fmt.Fprintf(w, "%s\n", first)
		}
		_, err := w.Write(changed.ReplaceAllFunc(rest, func(b []byte) []byte {
			digits := bytes.LastIndexAny(b, ":@")
			if digits < 0 { // a container's id
				return fmt.Appendf(nil, "%s%08x", b[:56], n)
			}
			end := bytes.TrimRight(b[digits+1:], `"`)
			at, _ := strconv.ParseInt(string(end), 10, 64)
			return fmt.Appendf(nil, "%s%d%s", b[:digits+1], at+int64(n)*round, b[digits+1+len(end):])
		}))
		if err != nil {
			panic(err)
		}
	}
}
