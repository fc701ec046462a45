//go:build linux

package standin

import (
	"fmt"
	"os"
)

type arrival struct {
	from *stream
	message
}

// database has one worker thread, so lost time delays all clients.
type database struct {
	*stage
	ports    map[string]*row
	monitors []*stream
	waits    map[string][]arrival // withheld answers by port
}

func serveDatabase() error {
	s, err := newStage(Database)
	if err != nil {
		return err
	}
	d := &database{stage: s, ports: map[string]*row{}, waits: map[string][]arrival{}}
	work := make(chan arrival)
	if err := listen(os.Getenv(databaseKey), func(c *stream) {
		_ = c.read(func(m message) { work <- arrival{c, m} })
	}); err != nil {
		return err
	}
	fmt.Println("ready")
	for a := range work {
		if err := d.handle(a); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	return nil
}

func (d *database) handle(a arrival) error {
	r := a.Params
	switch {
	case a.Method == "monitor":
		d.monitors = append(d.monitors, a.from)
		return a.from.send(message{ID: a.ID, Result: &row{}})
	case a.Method == "echo":
		return a.from.send(message{ID: a.ID, Result: &row{}})
	case r.Op == "insert":
		if err := d.at("db.insert", r.Inject, r.Container); err != nil {
			return err
		}
		d.ports[r.Port] = r
		d.update(r)
		return a.from.send(message{ID: a.ID, Result: r})
	case r.Op == "wait":
		if known := d.ports[r.Port]; known != nil && known.Number != 0 {
			return a.from.send(message{ID: a.ID, Result: known})
		}
		d.waits[r.Port] = append(d.waits[r.Port], a)
		return nil
	case r.Op == "set":
		if err := a.from.send(message{ID: a.ID, Result: r}); err != nil {
			return err
		}
		if err := d.at("db.answer", r.Inject, r.Container); err != nil {
			return err
		}
		d.ports[r.Port] = r
		d.update(r)
		for _, w := range d.waits[r.Port] {
			_ = w.from.send(message{ID: w.ID, Result: r}) // a disconnected client no longer waits
		}
		delete(d.waits, r.Port)
		return nil
	}
	delete(d.ports, r.Port)
	return a.from.send(message{ID: a.ID, Result: r})
}

func (d *database) update(r *row) {
	for _, m := range d.monitors {
		_ = m.send(message{Method: "update", Params: r}) // a disconnected client gets nothing
	}
}

func serveSwitch() error {
	s, err := newStage(Switch)
	if err != nil {
		return err
	}
	db, err := dial(os.Getenv(databaseKey))
	if err != nil {
		return err
	}
	work, gone := make(chan arrival), make(chan error, 1)
	take := func(c *stream) error { return c.read(func(m message) { work <- arrival{c, m} }) }
	go func() { gone <- take(db) }()
	if _, err := db.ask("monitor", row{}); err != nil {
		return err
	}
	if err := listen(os.Getenv(switchKey), func(c *stream) { _ = take(c) }); err != nil {
		return err
	}
	fmt.Println("ready")
	for number := 0; ; {
		select {
		case err := <-gone:
			return err
		case a := <-work:
			number++
			if err := s.turn(db, a, number); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}
	}
}

// turn handles one message: a new port gets a number, flows an answer.
func (s *stage) turn(db *stream, a arrival, number int) error {
	r := a.Params
	switch {
	case a.Method == "update" && r.Op == "insert":
		if err := s.at("switch.update", r.Inject, r.Container); err != nil {
			return err
		}
		set := *r
		set.Op, set.Number = "set", number
		_, err := db.begin("transact", set)
		return err
	case a.Method == "flows":
		if err := s.at("switch.flows", r.Inject, r.Container); err != nil {
			return err
		}
		return a.from.send(message{ID: a.ID, Result: r})
	}
	return nil
}
