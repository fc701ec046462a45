package winproc

import (
	"cmp"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/text"
	"github.com/cniscope/cniscope/pkg/windows/etw"
)

// request is kubelet's, by containerd's log.
type request struct {
	begin, end int64
	of         string // a pod's metadata, or a sandbox's id
	id         string
	pod        event.Pod
	stops      bool
	failed     bool
	calls      []*call
}

type line struct {
	time     int64
	text, id string
}

var (
	criLine = regexp.MustCompile(`^(Run|Stop)Pod[Ss]andbox for (.*?)` +
		`( returns sandbox id "([^"]*)"| returns successfully| failed(?:, error)?)?$`)
	criID   = regexp.MustCompile(`sandbox "([0-9a-f]{32,64})"`)
	criName = regexp.MustCompile(`\b(name|uid|namespace):"?([^\s",}]+)`)
)

func (t *Trace) heard(r *etw.Record) error {
	if r.Provider != etw.ContainerD || len(r.Schema) == 0 {
		return nil
	}
	said := r.Texts()
	l := line{time: r.Time, text: said["Message"]}
	if !criLine.MatchString(l.text) {
		return nil
	}
	if m := criID.FindStringSubmatch(said["error"]); m != nil {
		l.id = m[1]
	}
	t.log = append(t.log, l)
	return t.grow(len(l.text))
}

func (t *Trace) requests() (all []*request) {
	slices.SortStableFunc(t.log, func(a, b line) int { return cmp.Compare(a.time, b.time) })
	open, pods := map[string]*request{}, map[string]event.Pod{}
	for _, l := range t.log {
		m := criLine.FindStringSubmatch(l.text)
		key, over := m[1]+m[2], m[3] != ""
		q := open[key]
		if q == nil {
			q = &request{begin: l.time, end: math.MaxInt64, of: m[2], stops: m[1] == "Stop"}
			if over { // it began before the trace
				q.begin = t.first
			}
			all = append(all, q)
			open[key] = q
		}
		if q.stops {
			q.id = strings.Trim(q.of, `"`)
			q.pod = pods[q.id]
		} else {
			q.pod = podOf(q.of)
		}
		if over {
			q.end, q.failed = l.time, strings.Contains(m[3], "failed")
			q.id = cmp.Or(q.id, m[4], l.id)
			pods[q.id] = q.pod
			delete(open, key)
		}
	}
	return all
}

func podOf(metadata string) (p event.Pod) {
	for _, m := range criName.FindAllStringSubmatch(strings.ToLower(metadata), -1) {
		switch m[1] {
		case "name":
			p.Name = text.Clean(m[2], 253)
		case "uid":
			p.UID = text.Clean(m[2], 63)
		case "namespace":
			p.Namespace = text.Clean(m[2], 63)
		}
	}
	return p
}

// ask finds calls' requests: the only one in progress.
func (t *Trace) ask(calls []*call) {
	all := t.requests()
	slices.SortStableFunc(all, func(a, b *request) int { return cmp.Compare(a.begin, b.begin) })
	open, next := map[*request]bool{}, 0
	for _, c := range calls {
		for ; next < len(all) && all[next].begin <= c.Time; next++ {
			open[all[next]] = true
		}
		maps.DeleteFunc(open, func(q *request, _ bool) bool { return q.end < c.Time })
		if len(open) != 1 {
			continue
		}
		for q := range open {
			q.made(c)
		}
	}
}

// After a failed plugin, containerd runs DEL.
func (q *request) made(c *call) {
	c.Command, c.ContainerID, c.Pod = "ADD", text.Clean(q.id, 128), q.pod
	undoes := func(o *call) bool {
		return o.Command == "DEL" || o.ended != 0 && o.code != 0 || q.failed && o.name() == c.name()
	}
	if q.stops || slices.ContainsFunc(q.calls, undoes) {
		c.Command = "DEL"
	}
	q.calls = append(q.calls, c)
}
