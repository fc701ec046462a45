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

// chunk holds lines that follow each other as lines of JSON, deflated once it is full. Its bytes never change, so
// that a copy can be read while lines are added.
type chunk struct {
	first uint64 // Seq of its first line
	lines int
	began time.Time // the earliest Time of its lines
	ended time.Time // the latest
	data  []byte
	full  bool
}

// add appends the next line. Its Seq follows from its place, and Node is the same for all. The error is that of a
// Time which JSON cannot express.
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

// each calls take for the lines after a Seq until take returns false, and reports whether it never did.
func (c *chunk) each(node string, after uint64, take func(control.Line) bool) bool {
	data := c.data
	if c.full {
		data, _ = unpack(data) // packed by seal
	}
	seq := c.first - 1
	for one := range bytes.Lines(data) {
		if seq++; seq <= after {
			continue
		}
		var l control.Line
		_ = json.Unmarshal(one, &l) // written by add
		l.Seq, l.Node = seq, node
		if !take(l) {
			return false
		}
	}
	return true
}

// packer deflates. A flate.Writer takes 1.2 MB, which the pool gives back where memory is needed.
type packer struct{ writers sync.Pool }

func (p *packer) pack(data []byte) []byte {
	var out bytes.Buffer
	w, _ := p.writers.Get().(*flate.Writer)
	if w == nil {
		w, _ = flate.NewWriter(nil, flate.BestSpeed) // the level is a valid one
	}
	defer p.writers.Put(w)
	w.Reset(&out)
	_, err := w.Write(data)
	if errors.Join(err, w.Close()) != nil { // not into memory
		return nil
	}
	return bytes.Clone(out.Bytes())
}

func unpack(data []byte) ([]byte, error) { return io.ReadAll(flate.NewReader(bytes.NewReader(data))) }
