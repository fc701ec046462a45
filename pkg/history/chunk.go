package history

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"sync"
	"time"

	"github.com/cniscope/cniscope/pkg/control"
)

type chunk struct {
	first        uint64
	lines        int
	began, ended time.Time
	data         []byte // JSON lines, compressed once the chunk is full
}

// add encodes a line without Seq and Node, which the chunk implies. It fails if JSON cannot express Time.
func (c *chunk) add(l control.Line) error {
	l.Seq, l.Node, l.Time = 0, "", l.Time.UTC()
	line, err := json.Marshal(l)
	if err != nil {
		return err
	}
	if c.lines == 0 || l.Time.Before(c.began) {
		c.began = l.Time
	}
	if c.lines++; l.Time.After(c.ended) {
		c.ended = l.Time
	}
	c.data = append(append(c.data, line...), '\n')
	return nil
}

func (c chunk) decoded(after uint64) iter.Seq[control.Line] {
	return func(yield func(control.Line) bool) {
		seq := c.first - 1
		for one := range bytes.Lines(c.data) {
			if seq++; seq <= after {
				continue
			}
			l := control.Line{}
			_ = json.Unmarshal(one, &l) // valid: add encoded it
			if l.Seq = seq; !yield(l) {
				return
			}
		}
	}
}

// packer pools deflaters: each has 1.2 MB, which a pool frees under memory pressure.
type packer struct{ idle sync.Pool }

type deflater struct {
	*flate.Writer
	out bytes.Buffer
}

func (p *packer) pack(data []byte) []byte {
	d, _ := p.idle.Get().(*deflater)
	if d == nil {
		d = &deflater{}
		d.Writer, _ = flate.NewWriter(nil, flate.BestSpeed)
	}
	defer p.idle.Put(d)
	d.out.Reset()
	d.Reset(&d.out)
	_, err := d.Write(data)
	if errors.Join(err, d.Close()) != nil {
		return nil
	}
	return bytes.Clone(d.out.Bytes())
}

func unpack(data []byte) ([]byte, error) { return io.ReadAll(flate.NewReader(bytes.NewReader(data))) }
