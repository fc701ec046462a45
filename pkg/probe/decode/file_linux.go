package decode

import (
	"bytes"
	"strings"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/redact"
	"github.com/cniscope/cniscope/pkg/text"
)

func setting(r record) *event.Setting {
	if r.Object > uint64(len(r.data)) {
		return nil
	}
	key, ok := strings.CutPrefix(pathOf(r.data[r.Object:]), "/proc/sys/")
	if !ok {
		return nil
	}
	return &event.Setting{
		Process: r.process, Thread: r.Thread, Start: int64(r.Start),
		Key: key, Value: text.Clean(strings.Join(strings.Fields(string(r.data[:r.Object])), " "), text.Bound),
		Error: errno(r.Ret), NetNS: namespace(r.NetnsCookie, r.NetnsInum),
	}
}

func (d *Decoder) opened(r record) ([]event.Body, bool) {
	if r.Object == 0 {
		return nil, false
	}
	p := d.processes[r.process]
	if p == nil || r.Ret < 0 {
		return nil, true
	}
	fd, ns := uint32(r.Ret), d.namespace(r.NetnsCookie, r.NetnsInum)
	if delete(p.files, fd); ns.Key == "" {
		return nil, true
	}
	if p.files == nil || len(p.files) >= maxFiles {
		p.files = map[uint32]event.Namespace{}
	}
	p.files[fd] = ns
	d.sandboxes.Opened(pathOf(r.data), ns)
	return nil, true
}

func (d *Decoder) entered(r record) ([]event.Body, bool) {
	if r.NetnsInum == 0 {
		return nil, false
	}
	return one(r, &event.Enter{Process: r.process, Thread: r.Thread, NetNS: d.namespace(r.NetnsCookie, r.NetnsInum)}), true
}

// moved is for standard input or output, or writes below /proc/sys.
func (d *Decoder) moved(r record) ([]event.Body, bool) {
	switch {
	case r.Object == 0:
		return nil, false
	case r.Protocol != 0:
		return one(r, setting(r)), true
	}
	return d.stream(r), true
}

func (d *Decoder) stream(r record) []event.Body {
	p := d.processes[r.process]
	if p == nil || p.run.streams == nil {
		return nil
	}
	s, leader := p.run.streams, p.run.of.Leader
	if r.Out == onStderr {
		s.said = append(s.said, r.data...)
		s.said = s.said[max(0, len(s.said)-maxSaid):]
		return nil
	}
	to, pipe := &s.in, s.from
	if r.Out != 0 {
		to, pipe = &s.out, s.to
	}
	if r.Object != pipe {
		return nil
	}
	if r.Cut != 0 || to.Len()+len(r.data) > maxStream {
		if r.Out != 0 {
			s.cut = true
		} else {
			s.known.Lost()
		}
		return one(r, &event.Cut{Process: leader, What: "bytes", Count: uint64(max(r.Ret, 0))})
	}
	to.Write(r.data)
	if r.Out != 0 || s.configured || !bytes.HasSuffix(bytes.TrimSpace(s.in.Bytes()), []byte("}")) {
		return nil
	}
	if d.most > keptMax {
		d.most = d.kept()
	}
	full := d.most > keptMax
	if full {
		s.known.Full()
	}
	before := s.known.Kept()
	bodies := one(r, s.configuration(leader))
	d.most += s.known.Kept() - before
	if full && bodies != nil {
		bodies = append(bodies, &event.Cut{Process: leader, What: "inputs", Count: 1})
	}
	return bodies
}

// keptMax bounds all runs' inputs that redaction keeps, in bytes: 80 MB of memory. A run has about 10 KiB, but Multus
// passes on up to 256 KiB of annotations.
const keptMax = 2 << 20

func (d *Decoder) kept() (bytes int) {
	seen := map[*redact.Call]bool{}
	for _, p := range d.processes {
		if known := p.run.known; known != nil && !seen[known] {
			seen[known] = true
			bytes += known.Kept()
		}
	}
	return bytes
}

func (d *Decoder) missing(r record) ([]event.Body, bool) {
	path, _, _ := bytes.Cut(r.data, []byte{0})
	pid := r.H.Task.Pid
	if p := d.processes[r.process]; p != nil && p.run.leader != 0 {
		pid = p.run.leader // a command that tried may be gone
	}
	return one(r, &event.Missing{
		Process: r.process, PID: pid, Thread: r.Thread, Start: int64(r.Start), Name: d.names[r.Nr],
		Path: d.known(r.process).Path(text.Clean(string(path), text.Bound)), Error: errno(r.Ret), Count: r.Object,
	}), true
}
