package etl_test

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/windows/etw"
	"github.com/cniscope/cniscope/pkg/windows/etw/etl"
	"github.com/cniscope/cniscope/test/etwtest"
	"github.com/cniscope/cniscope/test/harness"
)

// recordings holds traces from real Windows, outside the repository.
const recordings = "../../../../../shared/etl"

// NAME.baseline.txt is Microsoft's decoding of NAME.etl (TraceEvent's tests): up to five events of each kind, and
// their numbers.
type oracle struct {
	events []happening
	counts map[string]int
}

type happening struct {
	line   string
	ns     int64 // since the start, exact to 1 µs
	kind   string
	fields map[string]string
}

func readOracle(t *testing.T, file string) (o oracle) {
	t.Helper()
	text, err := os.ReadFile(file)
	harness.Check(t, err)
	o.counts = map[string]int{}
	line := regexp.MustCompile(`^EVENT ([0-9,.]+): (.*?) (PID=.*)$`)
	field := regexp.MustCompile(`(\w+)=(.*?); `)
	for _, l := range strings.Split(string(text), "\n") {
		l = strings.TrimSuffix(l, "\r")
		if rest, is := strings.CutPrefix(l, "COUNT "); is {
			at := strings.LastIndexByte(rest, ':')
			if o.counts[rest[:at]], err = strconv.Atoi(rest[at+1:]); err != nil {
				t.Fatal(l)
			}
		}
		if m := line.FindStringSubmatch(l); m != nil {
			us, err := strconv.ParseInt(strings.NewReplacer(",", "", ".", "").Replace(m[1]), 10, 64)
			if err != nil {
				t.Fatal(l)
			}
			e := happening{line: l, ns: us * 1000, kind: m[2], fields: map[string]string{}}
			for _, f := range field.FindAllStringSubmatch(m[3], -1) {
				e.fields[f[1]] = f[2]
			}
			o.events = append(o.events, e)
		}
	}
	if len(o.events) == 0 || len(o.counts) == 0 {
		t.Fatalf("%s: no events", file)
	}
	return o
}

func forEachRecording(t *testing.T, test func(t *testing.T, base string, data []byte)) {
	files, _ := filepath.Glob(recordings + "/*.etl*")
	if len(files) == 0 {
		t.Skipf("there are no recordings in %s", recordings)
	}
	for _, file := range files {
		base := strings.TrimSuffix(strings.TrimSuffix(file, ".zip"), ".etl")
		t.Run(filepath.Base(base), func(t *testing.T) { test(t, base, etwtest.Unpacked(t, file)) })
	}
}

// recorded holds a file's decoded processes, and each record's place.
type recorded struct {
	header    etl.Header
	stats     etl.Stats
	processes []etw.Process
	records   []place
	decoder   etw.Decoder
}

type place struct {
	ns   int64
	size int
}

func readTrace(t *testing.T, data []byte) *recorded {
	t.Helper()
	r := harness.Must(etl.NewReader(bufio.NewReader(bytes.NewReader(data))))(t)
	tr := &recorded{header: r.Header()}
	var rec etw.Record
	for {
		if err := r.Next(&rec); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		tr.records = append(tr.records, place{rec.Time - tr.header.Began, len(rec.Payload)})
		if p, ok := tr.decoder.Decode(&rec); ok {
			tr.processes = append(tr.processes, p)
		}
	}
	tr.stats = r.Stats()
	slices.SortStableFunc(tr.processes, func(a, b etw.Process) int { return int(a.Time - b.Time) })
	return tr
}

// The oracle rounds to µs; this package rounds ns down.
func (e *happening) at(ns int64) bool { return ns >= e.ns-501 && ns <= e.ns+501 }

var kinds = map[etw.GUID]map[etw.What]string{
	etw.KernelProcess: {
		etw.Start: "Microsoft-Windows-Kernel-Process/ProcessStart/Start", etw.End: "Microsoft-Windows-Kernel-Process/ProcessStop/Stop",
		etw.Present: "Microsoft-Windows-Kernel-Process/ProcessRundown",
	},
	etw.SystemProcess: {
		etw.Start: "Windows Kernel/Process/Start", etw.End: "Windows Kernel/Process/Stop", etw.Present: "Windows Kernel/Process/DCStart",
		etw.Remains: "Windows Kernel/Process/DCStop", etw.Defunct: "Windows Kernel/Process/Defunct",
	},
}

func TestProcessesAreAsMicrosoftDecodesThem(t *testing.T) {
	compared := 0
	forEachRecording(t, func(t *testing.T, base string, data []byte) {
		tr := readTrace(t, data)
		if len(tr.decoder.Unknown)+len(tr.decoder.Malformed) > 0 || tr.stats.Broken > 0 {
			t.Errorf("not everything was read: %v %v %+v", tr.decoder.Unknown, tr.decoder.Malformed, tr.stats)
		}
		if _, err := os.Stat(base + ".baseline.txt"); err != nil {
			t.Skip("nobody says what is in it")
		}
		o := readOracle(t, base+".baseline.txt")
		counts := map[string]int{}
		for _, p := range tr.processes {
			counts[kinds[p.Provider][p.What]]++
		}
		for _, of := range kinds {
			for _, kind := range of {
				harness.Equal(t, counts[kind], o.counts[kind], kind, "Microsoft has")
			}
		}
		seen := map[string]int{}
		for _, p := range tr.processes {
			kind := kinds[p.Provider][p.What]
			if want := nth(o, kind, seen[kind]); want != nil {
				compare(t, tr.header, p, want)
				compared++
			}
			seen[kind]++
		}
	})
	t.Logf("%d events of processes were compared", compared)
}

func nth(o oracle, kind string, n int) *happening {
	for i := range o.events {
		if o.events[i].kind == kind {
			if n == 0 {
				return &o.events[i]
			}
			n--
		}
	}
	return nil
}

// The oracle cuts texts and times after 20 characters with "...".
func compare(t *testing.T, h etl.Header, p etw.Process, want *happening) {
	t.Helper()
	signed := func(n uint32) string { return strconv.Itoa(int(int32(n))) }
	calendar := func(filetime int64) string {
		utc := h.Start.Add(0) // sets the zone only
		return time.Unix(0, (filetime-116_444_736_000_000_000)*100).In(utc.Location()).Format("06/01/02 15:04:05.000000")
	}
	got := map[string]string{
		"ProcessID": signed(p.PID), "ParentID": signed(p.Parent), "ParentProcessID": signed(p.Parent),
		"ImageFileName": p.Image, "ImageName": p.Image,
		"ExitStatus": signed(p.Code), "ExitCode": signed(p.Code), "CommandLine": p.CommandLine,
		"CreateTime": calendar(p.Created),
	}
	if ns := p.Time - h.Began; !want.at(ns) {
		t.Errorf("at %d ns, Microsoft has %s", ns, want.line)
	}
	for name, text := range want.fields {
		mine, is := got[name]
		if !is {
			continue
		}
		text = strings.ReplaceAll(text, ",", "")
		if begin, cut := strings.CutSuffix(text, "..."); cut {
			text, mine = begin, mine[:min(len(mine), len(begin))]
		}
		harness.Equal(t, strings.ReplaceAll(mine, ",", ""), text, name, mine, "Microsoft in", want.line)
	}
}

// Each oracle event has a record of its time and size.
func TestRecordsAreWhereMicrosoftFindsThem(t *testing.T) {
	forEachRecording(t, func(t *testing.T, base string, data []byte) {
		if _, err := os.Stat(base + ".baseline.txt"); err != nil {
			t.Skip("nobody says what is in it")
		}
		tr, o := readTrace(t, data), readOracle(t, base+".baseline.txt")
		slices.SortFunc(tr.records, func(a, b place) int { return cmp.Compare(a.ns, b.ns) })
		for _, e := range o.events {
			first, _ := slices.BinarySearchFunc(tr.records, e.ns-501, func(p place, ns int64) int { return cmp.Compare(p.ns, ns) })
			then := tr.records[first:]
			if end := slices.IndexFunc(then, func(p place) bool { return !e.at(p.ns) }); end >= 0 {
				then = then[:end]
			}
			same := func(p place) bool {
				return strconv.Itoa(p.size) == strings.ReplaceAll(e.fields["DataLen"], ",", "")
			}
			if !slices.ContainsFunc(then, same) {
				t.Errorf("no record for %s", e.line)
			}
		}
		t.Logf("%d records, of them %d are in the oracle", len(tr.records), len(o.events))
	})
}
