package replay

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/pipeline"
)

// Bounds: an ordinary pod has two operations with 20 KiB of spans; record.MaxBytes hold 10,000.
const (
	keptInMemory    = 32 << 20
	keptOnDisk      = 1 << 30
	keptOperations  = 25_000
	largestKept     = 8 << 20 // of one operation; the spool takes half
	lateOperations  = 4096    // that may still get a first connection: four times those open at once
	temporaryPrefix = "cniscope-show-"
)

// kept is a recording's encoded spans, many of them in a nameless file. They are read several times, by start.
type kept struct {
	places []place
	order  []int
	later  map[int][]place // marks after an operation's end
	latest []known         // finished last
	memory []byte
	file   *os.File
	out    *bufio.Writer
	size   int64
	large  int // too large to keep
	failed error
}

type place struct {
	start, at int64
	length    int
}

type known struct {
	model.Key
	place int
}

func (k *kept) keep(r pipeline.Result) error {
	spans := r.Drawn().Spans
	if spans == nil {
		return nil
	}
	size := proto.Size(spans)
	if size > largestKept {
		k.large++
		return nil
	}
	over, is := r.(*pipeline.Judged)
	if is && len(k.places) >= keptOperations {
		return fmt.Errorf("there are more than %d operations in it, and no more of one recording are shown", keptOperations)
	}
	if k.size+int64(size) > keptOnDisk {
		return fmt.Errorf("the spans of its operations need more than %d MiB", keptOnDisk>>20)
	}
	p := place{at: k.size, length: size}
	switch r := r.(type) {
	case *pipeline.Connected:
		return k.late(r.Operation, p, spans)
	case *pipeline.After:
		return k.late(r.Operation, p, spans)
	case *pipeline.Started:
		return k.late(r.Operation, p, spans)
	}
	if len(k.latest) >= lateOperations {
		k.latest = slices.Delete(k.latest, 0, lateOperations/2)
	}
	p.start = over.Operation.Start
	k.latest = append(k.latest, known{over.Operation.Key(), len(k.places)})
	k.order = append(k.order, len(k.places))
	k.places = append(k.places, p)
	return k.write(spans)
}

func (k *kept) late(of model.Key, p place, spans *tracepb.ResourceSpans) error {
	i := slices.IndexFunc(k.latest, func(o known) bool { return o.Key == of })
	if i < 0 {
		return nil
	}
	if k.later == nil {
		k.later = map[int][]place{}
	}
	k.later[k.latest[i].place] = append(k.later[k.latest[i].place], p)
	return k.write(spans)
}

func (k *kept) write(spans *tracepb.ResourceSpans) (err error) {
	before := len(k.memory)
	if k.memory, err = (proto.MarshalOptions{Deterministic: true}).MarshalAppend(k.memory, spans); err != nil {
		return err
	}
	k.size += int64(len(k.memory) - before)
	if k.file == nil && len(k.memory) <= keptInMemory {
		return nil
	}
	if k.file == nil {
		if k.file, err = os.CreateTemp("", temporaryPrefix+"*"); err != nil {
			return noRoom(err)
		}
		_ = os.Remove(k.file.Name()) // where it fails, close removes it
		k.out = bufio.NewWriterSize(k.file, 1<<20)
	}
	if _, err = k.out.Write(k.memory); err != nil {
		return noRoom(err)
	}
	k.memory = k.memory[:0]
	return nil
}

func noRoom(err error) error {
	return fmt.Errorf("keeping the spans of a large recording: %w; TMPDIR names another folder for that", err)
}

func (k *kept) seal() error {
	slices.SortStableFunc(k.order, func(a, b int) int { return cmp.Compare(k.places[a].start, k.places[b].start) })
	k.latest = nil
	if k.file == nil {
		return nil
	}
	k.memory = nil
	return k.out.Flush()
}

// Operations are the spans of each operation, by start; see Failed afterwards.
func (k *kept) Operations() iter.Seq[*tracepb.ResourceSpans] {
	return func(yield func(*tracepb.ResourceSpans) bool) {
		for _, i := range k.order {
			spans, err := k.read(k.places[i])
			for _, p := range k.later[i] {
				mark, failed := k.read(p)
				if err = errors.Join(err, failed); err == nil {
					all := spans.ScopeSpans[0]
					all.Spans = append(all.Spans, mark.ScopeSpans[0].Spans...)
				}
			}
			if err != nil {
				k.failed = fmt.Errorf("reading again what was kept of the recording: %w", err)
				return
			}
			if !yield(spans) {
				return
			}
		}
	}
}

func (k *kept) read(p place) (*tracepb.ResourceSpans, error) {
	var data []byte
	if k.file == nil {
		data = k.memory[p.at : p.at+int64(p.length)]
	} else {
		data = make([]byte, p.length)
		if _, err := k.file.ReadAt(data, p.at); err != nil {
			return nil, err
		}
	}
	spans := &tracepb.ResourceSpans{}
	return spans, proto.Unmarshal(data, spans)
}

// Failed is why the last pass over the operations ended early, or nil.
func (k *kept) Failed() error { return k.failed }

func (k *kept) Close() {
	if k.file != nil {
		_ = k.file.Close()
		_ = os.Remove(k.file.Name())
	}
}
