//go:build linux

package soak

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

type entry struct {
	Plan   plan
	Began  time.Time
	Pods   []started
	Faults []happening
	// Recovery is the time from the last fault to the normal state, Settled from there until each
	// run is accounted for (s).
	Recovery, Settled float64
	Account           account
	Sample            sample
	Violations        []string `json:",omitempty"`
}

func (e entry) String() string {
	var kinds []string
	for _, f := range e.Faults {
		kinds = append(kinds, fmt.Sprintf("%s for %.1f s", f.Kind, f.Held))
	}
	failed := 0
	for _, p := range e.Pods {
		if p.Err != "" {
			failed++
		}
	}
	return fmt.Sprintf("%d pods (%d failed); %s; as before after %.1f s, accounted for after %.1f s more: %d of %d runs traced, %v excused, lost %v, %d spans true",
		len(e.Pods), failed, strings.Join(kinds, ", "), e.Recovery, e.Settled, e.Account.Traced, e.Account.Runs, e.Account.Excused, e.Account.Lost,
		e.Account.Checked-len(e.Account.False))
}

// A diary is a file with a line per round, synced before the next one.
type diary struct {
	file    *os.File
	entries []entry
}

// readDiary returns the rounds and the length without an incomplete last line.
func readDiary(path string) (entries []entry, whole int, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, 0, err
	}
	whole = bytes.LastIndexByte(text, '\n') + 1
	for line := range bytes.Lines(text[:whole]) {
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, 0, fmt.Errorf("%s: %w", path, err)
		}
		entries = append(entries, e)
	}
	return entries, whole, nil
}

// openDiary opens or creates a diary. It cuts an incomplete last line, whose round is repeated.
func openDiary(path string) (*diary, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	entries, whole, err := readDiary(path)
	if err == nil {
		err = file.Truncate(int64(whole))
	}
	if err == nil {
		_, err = file.Seek(int64(whole), io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &diary{file: file, entries: entries}, nil
}

func (d *diary) done() (pods, next int) {
	for _, e := range d.entries {
		pods += len(e.Pods)
		next = e.Plan.Round + 1
	}
	return pods, next
}

func (d *diary) write(e entry) error {
	line, err := json.Marshal(e)
	if err == nil {
		_, err = d.file.Write(append(line, '\n'))
	}
	if err == nil {
		err = d.file.Sync()
	}
	if err != nil {
		return fmt.Errorf("write the diary: %w", err)
	}
	d.entries = append(d.entries, e)
	return nil
}

func (d *diary) close() error { return d.file.Close() }
