package procfs

import (
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

func TestCleanRangesAreWhatTheProgramNeverWrites(t *testing.T) {
	const smaps = `00400000-010de000 r-xp 00000000 00:1b 4711                               /usr/bin/cniscope
Size:              13176 kB
Rss:                9000 kB
Private_Dirty:         0 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
010de000-01fc2000 r--p 00cde000 00:1b 4711                               /usr/bin/cniscope
Rss:                9000 kB
Anonymous:             0 kB
Swap:                  0 kB
01fc2000-01fc4000 r--p 01bc2000 00:1b 4711                               /usr/bin/cniscope
Rss:                   8 kB
Anonymous:             8 kB
Swap:                  4 kB
01fc4000-01fc6000 r--p 01bc4000 00:1b 4711                               /usr/bin/cniscope
Rss:                   0 kB
Anonymous:             0 kB
Swap:                  8 kB
SwapPss:               8 kB
01fc6000-021bc000 rw-p 01bc6000 00:1b 4711                               /usr/bin/cniscope
Anonymous:             0 kB
c000000000-c000400000 rw-p 00000000 00:00 0
Anonymous:             0 kB
7f0000000000-7f0000001000 r--s 00000000 00:0f 12                         anon_inode:bpf-map
Anonymous:             0 kB
7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0                          [vdso]
Anonymous:             0 kB
`
	want := []addresses{{0x400000, 0x10de000}, {0x10de000, 0x1fc2000}}
	harness.EqualSlices(t, cleanRanges([]byte(smaps), "/usr/bin/cniscope"), want)
}

func TestProgramGoesOnWithoutWhatWasReleased(t *testing.T) {
	harness.Check(t, ReleaseProgram())
	TestCleanRangesAreWhatTheProgramNeverWrites(t)
}
