package decode

import (
	"strings"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/text"
)

// textCalls are the system calls that are events of their own by the texts in their arguments
// (kernel.texts), by name. Each takes out of the texts what must not leave.
var textCalls = map[string]func(d *Decoder, r record, texts []string) event.Body{}

// textsOf returns the texts in a record's data, each as long as the kernel side reads it at most.
func textsOf(data []byte) (texts []string) {
	for one := range strings.SplitSeq(strings.TrimSuffix(string(data), "\x00"), "\x00") {
		texts = append(texts, text.Clean(one, text.Bound))
	}
	return texts
}
