package gather

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/cniconf"
	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/event"
)

func readFolder(sees view, dir string, most int) (d fact.Folder, err error) {
	at := sees.path(dir)
	d = fact.Folder{Dir: fact.Clean(dir), Digests: map[string]string{}}
	entries, err := os.ReadDir(at)
	switch d.Missing = errors.Is(err, fs.ErrNotExist); {
	case d.Missing && !sees.sure:
		return d, fmt.Errorf("the CNI directory %s: %w", d.Dir, errUnseen)
	case d.Missing:
		return d, nil
	case err != nil:
		return d, fmt.Errorf("cannot read the CNI directory: %w", err)
	}
	d.Made = born(at)
	networks, problems := cniconf.Load(at, cniconf.Digest{})
	d.Networks = networks
	for _, p := range problems {
		if errors.Is(p, fs.ErrPermission) {
			return d, p
		}
		d.Problems = append(d.Problems, p.Error())
	}
	d.NotJSON = len(problems) > 0 && errors.As(problems[0], new(*json.SyntaxError))
	sound := map[string]bool{}
	for _, n := range networks {
		sound[n.File] = true
		if filepath.Ext(n.File) != ".conflist" {
			continue
		}
		if text, err := read(filepath.Join(at, n.File)); err == nil {
			d.Digests[n.File] = digest(text)
		}
	}
	used := 0
	for _, e := range entries { // by name
		switch {
		case e.IsDir():
		case !slices.Contains([]string{".conf", ".conflist", ".json"}, filepath.Ext(e.Name())):
			d.Other = append(d.Other, e.Name())
		case sound[fact.Clean(e.Name())]:
			used++
		case d.Blocking == "" && (most <= 0 || used < most):
			d.Blocking = e.Name()
		}
	}
	return d, nil
}

func elsewhere(sees view, than string) (files []string) {
	for _, dir := range []string{
		"/etc/cni/net.d", "/etc/kubernetes/cni/net.d", "/var/lib/rancher/k3s/agent/etc/cni/net.d",
		"/var/snap/microk8s/current/args/cni-network",
	} {
		d, err := readFolder(sees, dir, 0)
		if err != nil || dir == filepath.Clean(than) {
			continue
		}
		for _, n := range d.Networks {
			files = append(files, fact.Clean(filepath.Join(dir, n.File)))
		}
	}
	return files
}

// digest returns a hash, because the text itself may hold secrets.
func digest(text []byte) string {
	// As JSON does.
	sum := sha256.Sum256([]byte(strings.ToValidUTF8(strings.TrimSpace(string(text)), "\ufffd")))
	return hex.EncodeToString(sum[:])
}

func programs(f *fact.Facts, sees view) (needed []fact.Binary, err error) {
	seen := map[string]bool{}
	need := func(name, network string) {
		if name != "" && !seen[name] {
			seen[name] = true
			wrong, there := wrongWith(sees, name, f.CRI.Value.BinDirs)
			if !there && !sees.sure {
				err = fmt.Errorf("the plugin %s: %w", fact.Clean(name), errUnseen)
			}
			needed = append(needed, fact.Binary{Name: name, Network: network, Wrong: wrong})
		}
	}
	if f.CRI.Value.NeedsLoopback {
		need("loopback", "of the interface lo")
	}
	for _, n := range slices.Concat(fact.Winners(f), fact.Networks(f.CRI.Value.Loaded)) {
		for _, p := range n.Plugins {
			need(p.Type, n.Name)
			need(p.IPAM, n.Name)
		}
	}
	for _, l := range f.CRI.Value.Loaded {
		for _, d := range l.Delegates {
			need(d, l.Name)
		}
	}
	return needed, err
}

func wrongWith(sees view, name string, dirs []string) (wrong *event.Program, there bool) {
	if name != filepath.Base(name) {
		return &event.Program{Name: name, Fault: event.FaultName}, true
	}
	absent := &event.Program{Name: name, Fault: event.FaultAbsent, Has: fact.List(dirs)}
	for _, dir := range dirs {
		file := filepath.Join(dir, name)
		info, err := os.Stat(sees.path(file))
		switch {
		case errors.Is(err, fs.ErrNotExist) || err == nil && info.IsDir():
			if to, unread := os.Readlink(filepath.Join(sees.path(dir), name)); err != nil && unread == nil {
				absent.File, absent.Needs = file, fact.Clean(to)
			}
			continue
		case err != nil:
			wrong = &event.Program{File: file, Fault: event.FaultUnreadable, Has: err.Error()}
		case !runnable(info):
			wrong = &event.Program{File: file, Fault: event.FaultMode, Has: info.Mode().String()}
		case info.Size() == 0:
			wrong = &event.Program{File: file, Fault: event.FaultEmpty}
		default:
			wrong = faultOf(sees, file)
		}
		if wrong != nil {
			wrong.Name = name
		}
		return wrong, true
	}
	return absent, false
}

// Programs caches faults.
type Programs struct {
	seen  string
	at    time.Time
	found []event.Program

	asked    string
	sees     view
	dirs     []string
	resolved time.Time
}

const (
	// relook bounds a result's age, since libraries and mounts may change.
	relook = 10 * time.Second
	// reresolve is for directories' links.
	reresolve = time.Second
)

// Faults returns the programs that process pid cannot start. It is not safe for concurrent use.
func (p *Programs) Faults(pid int, dirs, names []string) []event.Program {
	asked := fmt.Sprint(pid, dirs, names)
	fresh := asked == p.asked && time.Since(p.resolved) < reresolve
	if fresh && p.same(dirs, names) {
		return p.found
	}
	p.asked, p.resolved, p.sees, p.dirs = asked, time.Now(), viewOf(pid, contained()), nil
	for _, dir := range dirs {
		p.dirs = append(p.dirs, p.sees.path(dir))
	}
	if !fresh && p.same(dirs, names) {
		return p.found
	}
	p.at, p.found = time.Now(), nil
	for _, name := range names {
		if wrong, there := wrongWith(p.sees, name, dirs); wrong != nil && (there || p.sees.sure) {
			p.found = append(p.found, *wrong)
		}
	}
	return p.found
}

func (p *Programs) same(dirs, names []string) bool {
	before := p.seen
	p.seen = fmt.Sprint(p.sees, dirs, names)
	for _, name := range names {
		name = filepath.Base(name)
		for i, dir := range dirs {
			info, err := os.Lstat(filepath.Join(p.dirs[i], name))
			if err == nil && info.Mode().Type() == fs.ModeSymlink {
				info, err = os.Stat(p.sees.path(filepath.Join(dir, name)))
			}
			if err == nil {
				p.seen += fmt.Sprint(dir, info.Mode(), info.Size(), info.ModTime().UnixNano())
				break
			}
		}
	}
	return p.seen == before && time.Since(p.at) < relook
}

// readPlain follows no link and does not block.
func readPlain(file string, most int64) (text []byte, written time.Time, err error) {
	f, err := openLog(file)
	if err != nil {
		return nil, written, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, written, err
	}
	if !info.Mode().IsRegular() || info.Size() > most {
		return nil, written, errors.New("it is no file, or too large")
	}
	data := bytes.NewBuffer(make([]byte, 0, info.Size()+bytes.MinRead))
	_, err = data.ReadFrom(io.LimitReader(f, most))
	return data.Bytes(), info.ModTime(), err
}
