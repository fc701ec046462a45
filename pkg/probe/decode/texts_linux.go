package decode

import (
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/text"
)

// textCalls decode system calls with text arguments (kernel.texts).
var textCalls = map[string]func(d *Decoder, r record, texts []string) event.Body{
	"mount":      mounted,
	"umount2":    mounted,
	"move_mount": mounted,
}

func textsOf(data []byte) (texts []string) {
	for one := range strings.SplitSeq(strings.TrimSuffix(string(data), "\x00"), "\x00") {
		texts = append(texts, text.Clean(one, text.Bound))
	}
	return texts
}

// mounted decodes a mount or unmount, whose options are never read.
func mounted(d *Decoder, r record, texts []string) event.Body {
	m := &event.Mount{
		Process: r.process, Thread: r.Thread, Start: int64(r.Start), Name: d.names[r.Nr], Error: errno(r.Ret),
	}
	known := d.known(r.process)
	texts = append(texts, "", "", "")
	switch m.Name {
	case "mount":
		m.Source, m.Target, m.FSType, m.Flags = texts[0], texts[1], texts[2], flagsOf(r.Args[3], mountFlags)
		if r.Args[3]&(unix.MS_BIND|unix.MS_REMOUNT|unix.MS_MOVE|propagation) != 0 {
			m.FSType = "" // the kernel ignores it
		}
	case "umount2":
		m.Target, m.Flags = texts[0], flagsOf(r.Args[1], unmountFlags)
	case "move_mount":
		m.Source, m.Target = texts[0], texts[1]
	}
	m.Source, m.Target = known.Path(m.Source), known.Path(m.Target)
	if m.FSType != "" {
		m.FSType = known.Program(m.FSType)
	}
	return m
}

const propagation = unix.MS_SHARED | unix.MS_PRIVATE | unix.MS_SLAVE | unix.MS_UNBINDABLE

type flag struct {
	bit  uint64
	name string
}

var (
	mountFlags = []flag{
		{unix.MS_BIND, "bind"},
		{unix.MS_REC, "rec"},
		{unix.MS_REMOUNT, "remount"},
		{unix.MS_MOVE, "move"},
		{unix.MS_RDONLY, "ro"},
		{unix.MS_SHARED, "shared"},
		{unix.MS_PRIVATE, "private"},
		{unix.MS_SLAVE, "slave"},
		{unix.MS_UNBINDABLE, "unbindable"},
	}
	unmountFlags = []flag{{unix.MNT_FORCE, "force"}, {unix.MNT_DETACH, "detach"}, {unix.MNT_EXPIRE, "expire"}}
)

func flagsOf(argument uint64, all []flag) (names []string) {
	for _, f := range all {
		if argument&f.bit != 0 {
			names = append(names, f.name)
		}
	}
	return names
}
