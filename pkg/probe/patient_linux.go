package probe

import (
	"errors"
	"os"
	"time"
)

// errHangs says that the kernel does not come to the end of reading a file.
var errHangs = errors.New("reading it hangs")

// patient reads files of /proc that can hang: environ and cmdline are a process's own memory,
// which it may have mapped to a file on a mount that does not answer. Who reads waits for
// that, and the whole node for the reader.
type patient struct {
	// patience is how long one file may take.
	patience time.Duration
	// hung is how many never came to an end, each a thread that hangs with it until the
	// process, or ours, ends; hungMax how many may be.
	hung, hungMax int
}

// newPatient gives each read, which ordinarily takes microseconds, 100 ms, and reads no more files
// once eight of them hang: that costs 0.8 s in all.
func newPatient() *patient { return &patient{patience: 100 * time.Millisecond, hungMax: 8} }

// read is os.ReadFile, or errHangs.
func (p *patient) read(file string) ([]byte, error) {
	if p.hung >= p.hungMax {
		return nil, errHangs
	}
	type result struct {
		data []byte
		err  error
	}
	read := make(chan result, 1)
	go func() {
		data, err := os.ReadFile(file)
		read <- result{data, err}
	}()
	late := time.NewTimer(p.patience)
	defer late.Stop()
	select {
	case r := <-read:
		return r.data, r.err
	case <-late.C:
		p.hung++
		return nil, errHangs
	}
}
