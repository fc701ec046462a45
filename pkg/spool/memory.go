package spool

import "slices"

// Memory is a spool in memory: encoded operations, oldest first, each with an index entry K. Its owner bounds it and
// guards it against concurrent use.
type Memory[K any] struct {
	// Overhead is the size of an entry without its data, in bytes.
	Overhead int

	held []Held[K]
	size int
}

// Held is one entry of a Memory.
type Held[K any] struct {
	Index K
	Data  []byte
}

// Add appends an entry, whose data then belongs to the Memory.
func (m *Memory[K]) Add(index K, data []byte) {
	m.held = append(m.held, Held[K]{index, data})
	m.size += cap(data) + m.Overhead
}

// Remove removes up to n entries from number i on, and returns how many there were.
func (m *Memory[K]) Remove(i, n int) int {
	gone := m.held[min(i, len(m.held)):min(i+n, len(m.held))]
	n = len(gone)
	for _, h := range gone {
		m.size -= cap(h.Data) + m.Overhead
	}
	if i > 0 {
		m.held = slices.Delete(m.held, i, i+n)
		return n
	}
	clear(gone) // releases the data; the array stays
	m.held = m.held[n:]
	return n
}

// Held returns all entries. They are valid until the next Remove.
func (m *Memory[K]) Held() []Held[K] { return m.held }

// Size returns the bytes of all entries.
func (m *Memory[K]) Size() int { return m.size }
