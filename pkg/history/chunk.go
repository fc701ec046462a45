package history

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/cniscope/cniscope/pkg/control"
)

// chunk holds consecutive lines as JSON, compressed once full. Its bytes are append-only, so a copy can be read while
// lines are added.
type chunk struct {
	first uint64
	lines int
	began time.Time
	ended time.Time
	data  []byte
	full  bool
}

// add appends a line, without Seq and Node, which the chunk implies. It fails if JSON cannot express Time.
func (c *chunk) add(l control.Line) error {
	l.Seq, l.Node, l.Time = 0, "", l.Time.UTC()
	data, err := json.Marshal(l)
	if err != nil {
		return err
	}
	c.data = append(append(c.data, data...), '\n')
	if c.lines == 0 || l.Time.Before(c.began) {
		c.began = l.Time
	}
	if c.lines++; l.Time.After(c.ended) {
		c.ended = l.Time
	}
	return nil
}

// each calls take for the lines after a Seq until it returns false, and reports whether it never did.
func (c *chunk) each(node string, after uint64, take func(control.Line) bool) bool {
	data := c.data
	if c.full {
		data, _ = unpack(data) // compressed by seal, so valid
	}
	seq := c.first - 1
	for one := range bytes.Lines(data) {
		if seq++; seq <= after {
			continue
		}
		var l control.Line
		_ = json.Unmarshal(one, &l) // encoded by add, so valid
		l.Seq, l.Node = seq, node
		if !take(l) {
			return false
		}
	}
	return true
}

// packer compresses. A flate.Writer has 1.2 MB, which the pool frees under memory pressure.
type packer struct{ writers sync.Pool }

func (p *packer) pack(data []byte) []byte {
	var out bytes.Buffer
	w, _ := p.writers.Get().(*flate.Writer)
	if w == nil {
		w, _ = flate.NewWriter(nil, flate.BestSpeed)
	}
	defer p.writers.Put(w)
	w.Reset(&out)
	_, err := w.Write(data)
	if errors.Join(err, w.Close()) != nil { // memory writes do not fail
		return nil
	}
	return bytes.Clone(out.Bytes())
}

func unpack(data []byte) ([]byte, error) { return io.ReadAll(flate.NewReader(bytes.NewReader(data))) }
