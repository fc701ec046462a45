package spool

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

// For any bytes the scanner ends, moves forward only, and finds later records.
func FuzzScan(f *testing.F) {
	whole := encode(encode(nil, named("first")), named("second"))
	f.Add([]byte{})
	f.Add(whole)
	f.Add(whole[:len(whole)-3])
	f.Add(whole[5:])
	f.Add(append(bytes.Repeat(marker[:], 10), whole...))
	f.Add(bytes.Replace(whole, []byte("first"), []byte("worst"), 1))
	f.Fuzz(func(t *testing.T, data []byte) {
		last := encode(nil, named("at last"))
		data = append(data[:len(data):len(data)], last...)
		s := scanner{r: bytes.NewReader(data), end: int64(len(data))}
		found := ""
		for before := int64(0); ; before = s.at {
			h, got, err := s.next()
			if errors.Is(err, io.EOF) {
				break
			}
			if s.at <= before || s.at > s.end {
				t.Fatalf("from %d to %d of %d", before, s.at, s.end)
			}
			var damaged *DamagedError
			switch {
			case err == nil:
				found = string(got)
				if again := encode(nil, h.operation(got)); !bytes.Equal(again, data[h.at:h.next()]) {
					t.Fatalf("%x is written as %x", data[h.at:h.next()], again)
				}
			case !errors.As(err, &damaged) || damaged.From < before || damaged.To != s.at:
				t.Fatalf("%v, at %d", err, s.at)
			}
		}
		// Unless the fuzzer forges a header with a valid checksum.
		if found != "at last" && !bytes.Contains(data[:len(data)-len(last)], marker[:]) {
			t.Fatalf("the last record is %q", found)
		}
		whole, _ := ends(bytes.NewReader(data), int64(len(data)))
		if found == "at last" && whole != int64(len(data)) {
			t.Fatalf("%d of %d bytes are whole", whole, len(data))
		}
	})
}
