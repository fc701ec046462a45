package spool

import "slices"

// Memory is a spool in memory, oldest entry first. Its owner bounds and locks it.
type Memory[E any] struct {
	// Bytes returns an entry's size in bytes; nil for a spool that its owner bounds in entries only.
	Bytes func(E) int

	held []E
	size int
}

// Add appends an entry and takes over its data.
func (m *Memory[E]) Add(entry E) {
	m.held = append(m.held, entry)
	m.size += m.bytes(entry)
}

// Remove removes up to n entries from index i, and returns how many. A negative n removes none.
func (m *Memory[E]) Remove(i, n int) int {
	i = min(i, len(m.held))
	gone := m.held[i:min(i+max(0, n), len(m.held))]
	n = len(gone)
	for _, entry := range gone {
		m.size -= m.bytes(entry)
	}
	if i > 0 {
		m.held = slices.Delete(m.held, i, i+n)
		return n
	}
	clear(gone) // releases the data; the array stays
	m.held = m.held[n:]
	return n
}

func (m *Memory[E]) bytes(entry E) int {
	if m.Bytes == nil {
		return 0
	}
	return m.Bytes(entry)
}

// Held returns all entries, valid until the next Remove.
func (m *Memory[E]) Held() []E { return m.held }

// Size returns the size of all entries in bytes.
func (m *Memory[E]) Size() int { return m.size }
