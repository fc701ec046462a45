package spool

import "slices"

// Memory is a spool in memory, oldest entry first, each with an index of type K. Its owner bounds and locks it.
type Memory[K any] struct {
	// Overhead is an entry's size without data, in bytes.
	Overhead int

	held []Held[K]
	size int
}

// Held is one entry.
type Held[K any] struct {
	Index K
	Data  []byte
}

// Add appends an entry and takes over its data.
func (m *Memory[K]) Add(index K, data []byte) {
	m.held = append(m.held, Held[K]{index, data})
	m.size += cap(data) + m.Overhead
}

// Remove removes up to n entries from index i, and returns how many.
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

// Held returns all entries, valid until the next Remove.
func (m *Memory[K]) Held() []Held[K] { return m.held }

// Size returns the size of all entries in bytes.
func (m *Memory[K]) Size() int { return m.size }
