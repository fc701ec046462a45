package probe

import "github.com/cilium/ebpf"

// batch is how many entries of a kernel table are read by one system call. A table of 8192
// takes some 30 instead of 16,384.
const batch = 256

// each calls f with every entry of one of the kernel's hash tables. f may delete it. What is
// put in meanwhile may be left out. A table that cannot be read has no entries: that must
// never stop the reader.
func each[K, V any](m *ebpf.Map, f func(*K, *V)) {
	if m == nil { // the inside of plugins is not looked into
		return
	}
	var cursor ebpf.MapBatchCursor
	keys, values := make([]K, batch), make([]V, batch)
	for {
		n, err := m.BatchLookup(&cursor, keys, values, nil)
		for i := range n {
			f(&keys[i], &values[i])
		}
		if err != nil {
			return
		}
	}
}
