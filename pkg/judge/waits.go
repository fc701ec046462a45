package judge

import (
	"fmt"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/timeline"
)

// What an image waited for, the weakest evidence first: of what was under way at one
// instant the last of these is charged. The first four say little by themselves, since a
// thread of a program sleeps or has a connection open while others compute.
const (
	polling = iota
	asleep
	calling
	detecting
	strong
	inCall = iota - 1
	requesting
	mutex
	fileLock
	ranks
)

// wait is what an image waited for, as the accounting sees it.
type wait struct {
	rank       int
	start, end int64
	span       int // whose it is
	own        int64
	// part is what it is charged to.
	part Part
	// of is what it was waited for, where that was a connection.
	of *timeline.Connection
}

// located lists what the images of spans waited for, as far as it is known when.
func located(spans []span) []wait {
	n := 0
	for i := range spans {
		im := spans[i].image
		n += len(im.Facts) + len(im.Asleep) + len(im.Polling)
	}
	if n == 0 {
		return nil
	}
	waits := make([]wait, 0, n)
	for i := range spans {
		s := &spans[i]
		if s.end <= s.start {
			continue
		}
		c := collector{s: s, i: i, waits: waits}
		c.locks(s.image)
		// What a command does is the command, whatever that is, unless others hold it up.
		switch {
		case s.image.Run != nil:
			c.requests(s.image, s.image.Run.Plugin)
			c.others(s.image, s.image.Run.Plugin)
		case s.agent != nil:
			c.requests(s.image, s.image.Name)
			c.others(s.image, s.image.Name)
		}
		waits = c.waits
	}
	return waits
}

type collector struct {
	s     *span
	i     int
	waits []wait
}

func (c *collector) add(rank int, when timeline.Interval, part Part, of ...*timeline.Connection) {
	start, end := max(when.Start, c.s.start), min(when.End, c.s.end)
	if start >= end {
		return
	}
	w := wait{rank: rank, start: start, end: end, span: c.i, part: part}
	if len(of) > 0 {
		w.of = of[0]
	}
	c.waits = append(c.waits, w)
}

func (c *collector) locks(im *timeline.Image) {
	for f, w := range timeline.Each[*timeline.Wait](im.Facts) {
		part := Part{Name: w.Path, Detail: holder(w), Count: 1}
		switch w.Kind {
		case event.WaitLock:
			part.Kind = Locks
			if part.Name == "" {
				part.Name = w.Name
			}
		case event.WaitMutex:
			part.Kind, part.Name = KernelLocks, w.Name
		default:
			continue
		}
		if c.s.image.Run == nil {
			part.In = c.s.image.Name
		}
		rank := fileLock
		if part.Kind == KernelLocks {
			rank = mutex
		}
		c.add(rank, f.When, part)
	}
}

func (c *collector) requests(im *timeline.Image, plugin string) {
	for f, r := range timeline.Each[*timeline.Request](im.Facts) {
		c.add(requesting, f.When, Part{Kind: Network, Name: r.Name, In: plugin, Count: 1})
	}
	for f := range timeline.Each[*timeline.Setting](im.Facts) {
		c.add(requesting, f.When, Part{Kind: Network, Name: "sysctl", In: plugin, Count: 1})
	}
}

func (c *collector) others(im *timeline.Image, plugin string) {
	for f, w := range timeline.Each[*timeline.Wait](im.Facts) {
		if w.Kind == event.WaitCall {
			c.add(inCall, f.When, Part{Kind: SystemCalls, Name: w.Name, In: plugin, Count: 1})
		}
	}
	for f, d := range timeline.Each[*timeline.Detection](im.Facts) {
		c.add(detecting, f.When, Part{Kind: DAD, Name: plugin, In: plugin, Count: 1, Detail: detected(d)})
	}
	for f, made := range timeline.Each[*timeline.Connection](im.Facts) {
		name, detail := Peer(made), ""
		if made.Error != "" {
			detail = fmt.Sprintf("refused %d times: %s", made.Tries, made.Error)
		}
		c.add(calling, f.When, Part{Kind: Agents, Name: name, In: plugin, Count: 1, Detail: detail}, made)
	}
	for _, i := range im.Asleep {
		c.add(asleep, i, Part{Kind: Sleep, Name: plugin, Count: 1})
	}
	for _, i := range im.Polling {
		c.add(polling, i, Part{Kind: Waiting, Name: plugin, Count: 1})
	}
}

func detected(d *timeline.Detection) string {
	said := "for " + d.Address
	if d.On != "" {
		said += " on " + d.On
	}
	if d.State == event.AddressDuplicate {
		said += ", which somebody else has"
	}
	return said
}

// Peer names who was called, as far as it is known: "agentd at /run/agent.sock".
func Peer(c *timeline.Connection) string {
	if c.Server == nil || c.Server.Name == "" {
		return c.Address
	}
	return c.Server.Name + " at " + c.Address
}
