package etl_test

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/windows/etw"
	"github.com/cniscope/cniscope/pkg/windows/etw/etl"
	"github.com/cniscope/cniscope/test/etwtest"
	"github.com/cniscope/cniscope/test/harness"
)

// In ticks of the performance counter.
const second = 10_000_000

// 2026-11-22 12:00:00 UTC, minutes after boot.
const begins = 134_398_224_000_000_000

var someone = etw.GUID{1, 2, 3}

// One record per kind of header.
func made() etwtest.File {
	record := func(at int64, payload string) etw.Record {
		return etw.Record{Provider: someone, ID: 9, Version: 2, Opcode: 7, Time: 300*second + at, Payload: []byte(payload)}
	}
	return etwtest.File{
		Began: 300 * second, Start: begins, EventsLost: 5, BuffersLost: 6,
		Buffers: [][]byte{
			slices.Concat(
				etwtest.Event64(record(1*second, "plain")), etwtest.Event64(record(2*second, "with items"), 16, 3, 8),
				etwtest.Full64(record(3*second, "classic")), etwtest.Instance64(record(4*second, "instance")), etwtest.Message(13),
				etwtest.Event64(record(5*second, "behind a message")),
			),
			slices.Concat(
				etwtest.System64(3, 1, 4, 306*second, []byte("system")), etwtest.Compact64(3, 1, 4, 307*second, []byte("compact")),
				etwtest.PerfInfo(8, 3, 1, 4, 308*second, []byte("perfinfo")), etwtest.PerfInfo(4, 3, 1, 4, 309*second, []byte("of 32 bits")),
				etwtest.PerfInfo(8, 5, 1, 4, 310*second, []byte("a thread's")),
			),
		},
	}
}

func readAll(data []byte) (h etl.Header, records []etw.Record, stats etl.Stats, err error) {
	r, err := etl.NewReader(bytes.NewReader(data))
	if err != nil {
		return h, nil, stats, err
	}
	for {
		var rec etw.Record
		if err := r.Next(&rec); err != nil {
			return r.Header(), records, r.Stats(), err
		}
		rec.Payload = bytes.Clone(rec.Payload)
		records = append(records, rec)
	}
}

func TestEveryKindOfHeader(t *testing.T) {
	for _, compress := range []bool{false, true} {
		f := made()
		f.Compress = compress
		h, got, stats, err := readAll(f.Bytes())
		if !errors.Is(err, io.EOF) || stats.Broken != 0 {
			t.Fatalf("%v %+v", err, stats)
		}
		s := int64(time.Second)
		manifest := func(at int64, payload string) etw.Record {
			return etw.Record{Provider: someone, ID: 9, Version: 2, Opcode: 7, Time: at, Pointer: 8, Payload: []byte(payload)}
		}
		classic := func(at int64, provider etw.GUID, payload string) etw.Record {
			return etw.Record{Provider: provider, Version: 4, Opcode: 1, Time: at, Pointer: 8, Payload: []byte(payload)}
		}
		three, four, narrow := manifest(303*s, "classic"), manifest(304*s, "instance"), classic(309*s, etw.SystemProcess, "of 32 bits")
		three.ID, four.ID, narrow.Pointer = 0, 0, 4
		want := []etw.Record{
			manifest(301*s, "plain"), manifest(302*s, "with items"), three, four, manifest(305*s, "behind a message"),
			classic(306*s, etw.SystemProcess, "system"), classic(307*s, etw.SystemProcess, "compact"),
			classic(308*s, etw.SystemProcess, "perfinfo"), narrow, classic(310*s, etw.GUID{}, "a thread's"),
		}
		got = got[1:] // the header's
		if len(got) != len(want) {
			t.Fatalf("%d records, want %d", len(got), len(want))
		}
		for i := range want {
			harness.DeepEqual(t, got[i], want[i], "compressed", compress)
		}
		if h.EventsLost != 5 || h.BuffersLost != 6 || h.Began != 300*s || !h.Start.Equal(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)) {
			t.Errorf("%+v", h)
		}
	}
}

// A second has the same length with every clock.
func TestClocks(t *testing.T) {
	for clock, hz := range map[uint32]uint64{1: 2_435_000, 2: 10_000_000, 3: 2_400_000_000} {
		for _, pointer := range []int{4, 8} {
			f := etwtest.File{Clock: clock, Hz: hz, Pointer: pointer, Began: 77 * hz, Start: begins, Buffers: [][]byte{
				etwtest.Event64(etw.Record{Provider: someone, Time: int64(79 * hz)}),
			}}
			h, got, _, err := readAll(f.Bytes())
			if !errors.Is(err, io.EOF) || len(got) != 2 || got[1].Time-h.Began != int64(2*time.Second) {
				t.Errorf("clock %d, pointers of %d bytes: %v %+v %+v", clock, pointer, err, h, got)
			}
		}
	}
}

// Exactly the records before the cut are read.
func TestWhereverItIsCut(t *testing.T) {
	f := made()
	f.Compress = true
	whole := f.Bytes()
	_, all, stats, _ := readAll(whole)
	for n := 0; n < len(whole); n += 1 + n/5000*97 {
		_, got, read, err := readAll(whole[:n])
		var format *etl.FormatError
		var cut *etl.TruncatedError
		switch {
		case errors.As(err, &format):
			if n >= 65536 || len(got) > 0 {
				t.Fatalf("cut at %d: %v, though the header is there", n, err)
			}
		case errors.As(err, &cut):
			if cut.Read != read || read.Records != uint64(len(got)) || !strings.Contains(err.Error(), "cut off") {
				t.Fatalf("cut at %d: %v, read %+v", n, err, read)
			}
		case errors.Is(err, io.EOF): // between two buffers
			if read.Bytes != int64(n) {
				t.Fatalf("cut at %d: read to the end, which is at %d", n, read.Bytes)
			}
		default:
			t.Fatalf("cut at %d: %v", n, err)
		}
		if read.Broken > 0 || len(got) > 0 && !reflect.DeepEqual(got, all[:len(got)]) {
			t.Fatalf("cut at %d: %d records, which are not the first ones; %+v", n, len(got), read)
		}
	}
	if len(all) != 11 || stats.Records != 11 {
		t.Errorf("%+v", stats)
	}
}

func TestWhatIsNoTrace(t *testing.T) {
	whole := made().Bytes()
	for name, data := range map[string][]byte{
		"empty": nil, "text": []byte(strings.Repeat("this is no trace ", 10000)), "zeros": make([]byte, 1<<17),
		"a buffer of records only": whole[65536:],
	} {
		_, _, _, err := readAll(data)
		var format *etl.FormatError
		if !errors.As(err, &format) || !strings.HasPrefix(err.Error(), "this is no trace (.etl) that can be read: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAReaderThatFails(t *testing.T) {
	failure := errors.New("the disk is gone")
	whole := made().Bytes()
	r, err := etl.NewReader(io.MultiReader(bytes.NewReader(whole[:70000]), failing{failure}))
	harness.Check(t, err)
	var rec etw.Record
	for err == nil {
		err = r.Next(&rec)
	}
	if !errors.Is(err, failure) {
		t.Error(err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// The next buffer is read.
func TestABrokenRecordEndsItsBufferOnly(t *testing.T) {
	for name, breaks := range map[string]func(b []byte){
		"longer than the buffer": func(b []byte) { b[0], b[1] = 0xff, 0xff },
		"shorter than its head":  func(b []byte) { b[0], b[1] = 9, 0 },
		"no record":              func(b []byte) { b[3] = 0 },
	} {
		whole := made().Bytes()
		breaks(whole[65536+72:])
		_, got, stats, err := readAll(whole)
		if !errors.Is(err, io.EOF) || stats.Broken != 1 || len(got) != 1+5 {
			t.Errorf("%s: %v %+v, %d records", name, err, stats, len(got))
		}
	}
}

// Reading ends, in bounded memory, with a reason and correct counters.
func FuzzRead(f *testing.F) {
	for _, compress := range []bool{false, true} {
		m := made()
		m.Compress, m.Size = compress, 1024
		whole := m.Bytes()
		f.Add(whole)
		f.Add(whole[:len(whole)-9])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := etl.NewReader(bytes.NewReader(data))
		if err != nil {
			return
		}
		var rec etw.Record
		var d etw.Decoder
		payloads, n := 0, uint64(0)
		for ; err == nil; n++ {
			if err = r.Next(&rec); err == nil {
				payloads += len(rec.Payload)
				d.Decode(&rec)
			}
		}
		var cut *etl.TruncatedError
		if !errors.Is(err, io.EOF) && !errors.As(err, &cut) {
			t.Errorf("%T: %v", err, err)
		}
		if s := r.Stats(); s.Records != n-1 || s.Bytes > int64(len(data)) || payloads > 1000*len(data)+1<<20 {
			t.Errorf("of %d bytes: %+v, %d records, %d bytes of payload", len(data), s, n-1, payloads)
		}
	})
}

// Classic events have 16-bit versions.
func TestAVersionBeyond255IsNoOther(t *testing.T) {
	f := etwtest.File{Buffers: [][]byte{etwtest.System64(3, 1, 260, 1, nil)}}
	if _, got, _, err := readAll(f.Bytes()); !errors.Is(err, io.EOF) || got[1].Version != 255 {
		t.Errorf("%v %+v", err, got)
	}
}

// Preallocated space is empty.
func TestASessionThatWasNotStopped(t *testing.T) {
	_, got, stats, err := readAll(append(made().Bytes(), make([]byte, 1<<17)...))
	var cut *etl.TruncatedError
	if !errors.As(err, &cut) || !strings.Contains(err.Error(), "not stopped; 11 records of 3 buffers") || len(got) != 11 || stats.Broken != 0 {
		t.Errorf("%v %+v", err, stats)
	}
}

// The existing records are read, the rest counted.
func TestABufferShorterThanItSays(t *testing.T) {
	f := made()
	f.Compress = true
	whole := f.Bytes()
	second := int(whole[0]) | int(whole[1])<<8
	whole[second+48+1] = 0xff // WMI_BUFFER_HEADER.Offset
	_, got, stats, err := readAll(whole)
	if !errors.Is(err, io.EOF) || stats.Broken != 1 || len(got) != 11 {
		t.Errorf("%v %+v, %d records", err, stats, len(got))
	}
}

// Reading ends with a reason.
func TestEveryBitFlipped(t *testing.T) {
	f := made()
	f.Compress = true
	whole := f.Bytes()
	for bit := range 8 * len(whole) {
		flipped := bytes.Clone(whole)
		flipped[bit/8] ^= 1 << (bit % 8)
		ends(t, flipped)
	}
}

func ends(t *testing.T, data []byte) {
	t.Helper()
	r, err := etl.NewReader(bytes.NewReader(data))
	var rec etw.Record
	var d etw.Decoder
	for err == nil {
		if err = r.Next(&rec); err == nil {
			d.Decode(&rec)
		}
	}
	var format *etl.FormatError
	var cut *etl.TruncatedError
	if !errors.Is(err, io.EOF) && !errors.As(err, &format) && !errors.As(err, &cut) {
		t.Errorf("%T: %v", err, err)
	}
}
