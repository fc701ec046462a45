package history

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/control"
)

// chunk holds lines that follow each other, packed: a text that several of them have is held once. What is in
// it never changes, so that a copy can be read while lines are added.
type chunk struct {
	first uint64 // Seq of its first line
	lines int
	began time.Time // the earliest Time of its lines
	ended time.Time // the latest
	texts []string
	data  []byte
	index map[string]uint64 // places in texts; nil once the chunk is full
	held  int               // bytes of texts, as allocated
}

func newChunk(first uint64) *chunk { return &chunk{first: first, index: map[string]uint64{}} }

// textHeader is what a string takes besides its bytes.
const textHeader = 16

// size is how many bytes the chunk holds; those of index come on top.
func (c *chunk) size() int { return cap(c.data) + textHeader*cap(c.texts) + c.held }

// seal gives back what a full chunk needs no more. The capacity then is what was allocated, and not less.
func (c *chunk) seal() {
	c.index = nil
	c.data = append([]byte(nil), c.data...)
	c.texts = append([]string(nil), c.texts...)
}

// allocated is what Go takes for a text of n bytes: it allocates by classes (runtime/sizeclasses.go).
func allocated(n int) int {
	step := 16
	if n > 256 {
		step = 32
	}
	return (n + step - 1) / step * step
}

// add packs the next line. Its Seq follows from its place; Node is everybody's.
func (c *chunk) add(l control.Line) {
	c.data = binary.AppendVarint(c.data, l.Time.UnixNano())
	c.data = binary.AppendUvarint(c.data, uint64(max(0, l.Duration)))
	var marks byte
	for bit, is := range [...]bool{l.Certain, l.Foreign} {
		if is {
			marks |= 1 << bit
		}
	}
	c.data = append(c.data, marks)
	for _, id := range [...]string{l.PodUID, l.Sandbox, l.TraceID} { // no two lines of many have them in common
		c.data = appendID(c.data, id)
	}
	for _, text := range texts(&l) {
		c.data = binary.AppendUvarint(c.data, c.place(*text))
	}
	c.addOwn(l)
	if c.lines == 0 || l.Time.Before(c.began) {
		c.began = l.Time
	}
	c.lines++
	if l.Time.After(c.ended) {
		c.ended = l.Time
	}
}

// texts are the fields of a line that others often have, too.
func texts(l *control.Line) [11]*string {
	return [...]*string{
		(*string)(&l.Result), &l.Namespace, &l.Pod, &l.Command, &l.IfName, &l.Network, &l.Plugin, &l.Cause, &l.Verdict, &l.Remedy, &l.Error,
	}
}

// addOwn writes Own as what it has in place of a piece of Verdict, since the rest is the same.
func (c *chunk) addOwn(l control.Line) {
	before, after := 0, 0
	most := min(len(l.Own), len(l.Verdict))
	for before < most && l.Own[before] == l.Verdict[before] {
		before++
	}
	for after < most-before && l.Own[len(l.Own)-1-after] == l.Verdict[len(l.Verdict)-1-after] {
		after++
	}
	if l.Own == "" {
		c.data = append(c.data, 0)
		return
	}
	c.data = append(c.data, 1)
	c.data = binary.AppendUvarint(c.data, uint64(before))
	c.data = binary.AppendUvarint(c.data, uint64(after))
	c.data = binary.AppendUvarint(c.data, c.place(l.Own[before:len(l.Own)-after]))
}

func (c *chunk) takeOwn(data []byte, l *control.Line) (rest []byte) {
	if data[0] == 0 {
		return data[1:]
	}
	data = data[1:]
	var numbers [3]uint64
	for i := range numbers {
		number, n := binary.Uvarint(data)
		numbers[i], data = number, data[n:]
	}
	l.Own = l.Verdict[:numbers[0]] + c.text(numbers[2]) + l.Verdict[len(l.Verdict)-int(numbers[1]):]
	return data
}

// text is the one at a place.
func (c *chunk) text(at uint64) string {
	if at == 0 {
		return ""
	}
	return c.texts[at-1]
}

// place is where a text is, from 1; 0 is the empty one.
func (c *chunk) place(text string) uint64 {
	if text == "" {
		return 0
	}
	at, known := c.index[text]
	if !known {
		text = strings.Clone(text) // it may be a piece of something large
		c.texts = append(c.texts, text)
		c.held += allocated(len(text))
		at = uint64(len(c.texts))
		c.index[text] = at
	}
	return at
}

// each hands the lines to take until that returns false, and reports whether it never did.
func (c *chunk) each(node string, take func(control.Line) bool) bool {
	data := c.data
	for i := range c.lines {
		l := control.Line{Seq: c.first + uint64(i), Node: node}
		ended, n := binary.Varint(data)
		data = data[n:]
		took, n := binary.Uvarint(data)
		data = data[n:]
		l.Time, l.Duration = time.Unix(0, ended).UTC(), time.Duration(took)
		l.Certain, l.Foreign = data[0]&1 != 0, data[0]&2 != 0
		data = data[1:]
		for _, id := range [...]*string{&l.PodUID, &l.Sandbox, &l.TraceID} {
			*id, data = takeID(data)
		}
		for _, text := range texts(&l) {
			at, n := binary.Uvarint(data)
			data = data[n:]
			*text = c.text(at)
		}
		data = c.takeOwn(data, &l)
		if !take(l) {
			return false
		}
	}
	return true
}

// appendID writes an id: in half its length if it is hex, as nearly all are. The lowest bit of the length
// says so.
func appendID(data []byte, id string) []byte {
	if packed, err := hex.DecodeString(id); err == nil && strings.ToLower(id) == id {
		data = binary.AppendUvarint(data, uint64(len(packed))<<1|1)
		return append(data, packed...)
	}
	data = binary.AppendUvarint(data, uint64(len(id))<<1)
	return append(data, id...)
}

func takeID(data []byte) (id string, rest []byte) {
	length, n := binary.Uvarint(data)
	raw, rest := data[n:n+int(length>>1)], data[n+int(length>>1):]
	if length&1 != 0 {
		return hex.EncodeToString(raw), rest
	}
	return string(raw), rest
}
