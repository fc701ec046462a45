package show

import (
	"bufio"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"io"
	"iter"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

//go:embed page.html
var pageTemplate string

//go:embed page.css
var pageStyle string

// Page writes operations as one page of HTML that needs nothing else: no script, no font,
// no request. It goes through them several times. Its first line is the verdict on the call
// that is worst off; then every call that was slow or failed, then the others, folded.
func Page(w io.Writer, operations iter.Seq[*tracepb.ResourceSpans]) error {
	t, err := template.New("page").Parse(pageTemplate)
	if err != nil {
		return err
	}
	p := newPage(operations)
	buffered := bufio.NewWriter(&counter{w, p.written})
	if err := t.Execute(buffered, p); err != nil {
		return err
	}
	return buffered.Flush()
}

// counter counts what is written.
type counter struct {
	io.Writer
	n *int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	*c.n += int64(n)
	return n, err
}

// Style is the page's own, the only one that Policy lets through.
func (*page) Style() template.CSS { return template.CSS(pageStyle) }

// Policy is what a browser may load and run for this page: its style, and nothing else.
// Foreign text is escaped; should that ever fail, this holds.
func (*page) Policy() string {
	hash := sha256.Sum256([]byte(pageStyle))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'; base-uri 'none'; form-action 'none'"
}
