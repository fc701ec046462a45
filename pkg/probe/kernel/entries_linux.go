package kernel

import (
	"reflect"

	"github.com/cilium/ebpf"
)

// batch is how many entries of a kernel table are read by one system call. A table of 8192
// takes some 30 instead of 16,384.
const batch = 256

// Each calls f with every entry of one of the kernel's hash tables. f may delete it. What is
// put in meanwhile may be left out. A table that cannot be read has no entries: that must
// never stop the reader.
func Each[K, V any](m *ebpf.Map, f func(*K, *V)) {
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

// count is how many entries a table has.
func count(m *ebpf.Map) (n int) {
	var cursor ebpf.MapBatchCursor
	keys, values := room(m.KeySize()), room(m.ValueSize())
	for {
		some, err := m.BatchLookup(&cursor, keys, values, nil)
		n += some
		if err != nil {
			return n
		}
	}
}

// room is a slice of as many bytes for each entry of a batch.
func room(size uint32) any {
	entry := reflect.ArrayOf(int(size), reflect.TypeFor[byte]())
	return reflect.MakeSlice(reflect.SliceOf(entry), batch, batch).Interface()
}

func clearMap[K, V any](m *ebpf.Map) {
	removeFrom(m, func(K, *V) bool { return true })
}

// removeFrom deletes the entries that gone says are.
func removeFrom[K, V any](m *ebpf.Map, gone func(K, *V) bool) {
	Each(m, func(key *K, value *V) {
		if gone(*key, value) {
			_ = m.Delete(*key) // gone by itself is as good
		}
	})
}
