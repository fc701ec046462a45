package record

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/cniscope/cniscope/pkg/disk"
	"github.com/cniscope/cniscope/pkg/event"
)

// Writer writes a recording. It is not safe for concurrent use.
type Writer struct {
	out  *bufio.Writer
	gzip *gzip.Writer
	file disk.File // nil if the caller closes the file
	line bytes.Buffer
	json *json.Encoder
}

// NewWriter begins a buffered recording on w.
func NewWriter(w io.Writer, header Header) (*Writer, error) {
	r := &Writer{out: bufio.NewWriterSize(w, 64<<10)}
	r.json = json.NewEncoder(&r.line)
	r.json.SetEscapeHTML(false) // people read recordings
	header.Format, header.Version = format, Version
	if err := r.json.Encode(header); err != nil {
		return nil, fmt.Errorf("write the recording's header: %w", err)
	}
	return r, r.end()
}

// Create begins a recording in a new file with mode 0600, gzipped if its name ends in ".gz". Without overwrite it fails
// with fs.ErrExist; with it, it replaces only a regular file. It never follows symbolic links.
func Create(path string, header Header, overwrite bool) (*Writer, error) {
	return create(disk.System(), path, header, overwrite)
}

func create(on disk.FS, path string, header Header, overwrite bool) (*Writer, error) {
	compressed := strings.HasSuffix(path, ".gz")
	if !overwrite {
		return begin(on, path, compressed, header)
	}
	if err := spare(on, path); err != nil {
		return nil, err
	}
	if runtime.GOOS == "windows" { // it cannot rename an open file
		if err := remove(on, path); err != nil {
			return nil, err
		}
		return begin(on, path, compressed, header)
	}
	// A kill may leave it.
	next := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".next")
	if err := errors.Join(spare(on, next), remove(on, next)); err != nil {
		return nil, err
	}
	w, err := begin(on, next, compressed, header)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(w.Flush(), w.file.Sync()); err != nil {
		return nil, errors.Join(err, w.file.Close(), on.Remove(next))
	}
	if err := on.Rename(next, path); err != nil {
		return nil, errors.Join(fmt.Errorf("overwrite the recording: %w", err), w.file.Close(), on.Remove(next))
	}
	return w, nil
}

func begin(on disk.FS, path string, compressed bool, header Header) (*Writer, error) {
	// O_CREATE|O_EXCL never follows the last component (open(2)).
	f, err := on.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%w; choose another name, or remove the file", err)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot create the recording: %w", err)
	}
	var compress *gzip.Writer
	var out io.Writer = f
	if compressed {
		compress = gzip.NewWriter(f)
		out = compress
	}
	w, err := NewWriter(out, header)
	if err != nil {
		return nil, errors.Join(err, f.Close(), on.Remove(path))
	}
	w.gzip, w.file = compress, f
	return w, nil
}

func spare(on disk.FS, path string) error {
	info, err := on.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("cannot create the recording: %w", err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("cannot create the recording: %s is not a regular file: choose another name", path)
	}
	return nil
}

func remove(on disk.FS, path string) error {
	if err := on.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("overwrite the recording: %w", err)
	}
	return nil
}

// Write appends an event. After ErrTooLong the recording may continue; other errors are final.
func (w *Writer) Write(e event.Event) error {
	kind := event.Kind(e.Body)
	if kind == "" {
		return fmt.Errorf("an event of type %T has no place in a recording", e.Body)
	}
	w.line.WriteString(`{"t":`)
	w.line.Write(strconv.AppendInt(w.line.AvailableBuffer(), e.Time, 10))
	w.line.WriteString(`,"` + kind + `":`)
	if err := w.json.Encode(e.Body); err != nil {
		w.line.Reset()
		return fmt.Errorf("write an event of kind %s: %w", kind, err)
	}
	w.line.Truncate(w.line.Len() - 1) // Encode's line feed
	w.line.WriteString("}\n")
	if err := w.end(); err != nil {
		return fmt.Errorf("write an event of kind %s: %w", kind, err)
	}
	return nil
}

func (w *Writer) end() error {
	defer w.line.Reset()
	if w.line.Len() > maxLine {
		return ErrTooLong
	}
	_, err := w.out.Write(w.line.Bytes())
	return err
}

// Flush makes all events visible to readers.
func (w *Writer) Flush() error {
	if err := w.out.Flush(); err != nil {
		return fmt.Errorf("write the recording: %w", err)
	}
	if w.gzip != nil {
		if err := w.gzip.Flush(); err != nil {
			return fmt.Errorf("write the recording: %w", err)
		}
	}
	return nil
}

// Close ends the recording, and syncs and closes the file of Create.
func (w *Writer) Close() error {
	err := w.Flush()
	if w.gzip != nil {
		err = errors.Join(err, w.gzip.Close())
	}
	if w.file != nil {
		err = errors.Join(err, w.file.Sync(), w.file.Close())
	}
	return err
}
