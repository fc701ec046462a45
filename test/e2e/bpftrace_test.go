//go:build linux

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/tied"
)

// bpftrace is a running script that prints the scheduler's tracepoints for every process of this PID namespace.
type bpftrace struct {
	cmd       *exec.Cmd
	done      chan error
	out, errs string
	wall      distance
}

// script prints a line per fork, exec and exit: nsecs, thread and process in the initial PID namespace, process in
// its own namespace, and details. struct pid ends in an array that bpftrace cannot index: $1 is its offset, $2 the element
// size.
func script() string {
	probe := func(what, last string) string {
		return "tracepoint:sched:sched_process_" + what + ` {
	$t = nsecs;
	$p = ((struct task_struct *)curtask)->group_leader->thread_pid;
	$u = (struct upid *)((uint64)$p + $1 + @level * $2);
	if ($p->level >= @level && $u->ns->ns.inum == @ns) {
		printf("` + what + ` %llu %d %d %d %s\n", $t, tid, pid, $u->nr, ` + last + `);
	}
}
`
	}
	return `BEGIN {
	$p = ((struct task_struct *)curtask)->group_leader->thread_pid;
	$u = (struct upid *)((uint64)$p + $1 + $p->level * $2);
	@ns = $u->ns->ns.inum;
	@level = $p->level;
}
` + strings.Replace(probe("fork", "args->child_pid"), "%s", "%d", 1) + probe("exec", "str(args->filename)") + probe("exit", `"."`)
}

func startBpftrace(t *testing.T) *bpftrace {
	t.Helper()
	if _, err := exec.LookPath("bpftrace"); err != nil {
		t.Skip("bpftrace is not there: run `make debian-test`")
	}
	kernel := harness.Must(btf.LoadKernelSpec())(t)
	var pid, upid *btf.Struct
	harness.Check(t, errors.Join(kernel.TypeByName("pid", &pid), kernel.TypeByName("upid", &upid)))
	numbers := slices.IndexFunc(pid.Members, func(m btf.Member) bool { return m.Name == "numbers" })

	dir := t.TempDir()
	b := &bpftrace{done: make(chan error, 1), out: filepath.Join(dir, "out"), errs: filepath.Join(dir, "errs")}
	errs := harness.Must(os.Create(b.errs))(t)
	defer errs.Close()
	// Containers often lack tracefs: it is mounted in a private namespace.
	b.cmd = exec.Command("unshare", "--mount", "sh", "-c",
		`[ -e /sys/kernel/tracing/events ] || mount -t tracefs tracefs /sys/kernel/tracing; exec bpftrace "$@"`,
		"sh", "-q", "-B", "line", "-o", b.out, "-e", script(),
		fmt.Sprint(pid.Members[numbers].Offset.Bytes()), fmt.Sprint(upid.Size))
	b.cmd.Env = append(os.Environ(), "BPFTRACE_STRLEN=200", "BPFTRACE_PERF_RB_PAGES=1024")
	b.cmd.Stdout, b.cmd.Stderr = errs, errs
	b.wall = bootToWall()
	harness.Check(t, tied.Start(b.cmd))
	go func() { b.done <- b.cmd.Wait() }()
	t.Cleanup(func() { _ = b.cmd.Process.Kill() })
	b.canary(t)
	return b
}

func (b *bpftrace) canary(t *testing.T) {
	t.Helper()
	ended := false
	for deadline := time.Now().Add(30 * time.Second); !ended && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		select {
		case err := <-b.done:
			b.done <- err
			ended = true
		default:
		}
		cmd := exec.Command("true")
		harness.Check(t, cmd.Run())
		reported, _ := os.ReadFile(b.out) // created late
		for line := range bytes.Lines(reported) {
			if f := strings.Fields(string(line)); len(f) == 6 && f[0] == "exec" && f[4] == fmt.Sprint(cmd.Process.Pid) {
				return
			}
		}
	}
	said, _ := os.ReadFile(b.errs)
	t.Fatalf("bpftrace does not report what is run:\n%s", said)
}

// stop stops bpftrace and returns its lines of six fields. It fails if events were lost or the wall clock was set.
func (b *bpftrace) stop(t *testing.T) (lines [][]string) {
	t.Helper()
	harness.Check(t, b.cmd.Process.Signal(syscall.SIGINT))
	select {
	case err := <-b.done:
		harness.Check(t, err)
	case <-time.After(time.Minute):
		t.Fatal("bpftrace does not end")
	}
	if said, err := os.ReadFile(b.errs); err != nil || bytes.Contains(said, []byte("Lost ")) {
		t.Fatalf("bpftrace lost events, so nothing can be compared with it; run the test again (%v):\n%s", err, said)
	}
	if now := bootToWall(); now.least > b.wall.most || now.most < b.wall.least {
		t.Fatalf("the calendar was set during the test, from %+v to %+v ns after the boot's clock", b.wall, now)
	}
	text := harness.Must(os.ReadFile(b.out))(t)
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 6 { // otherwise its maps, at the end
			lines = append(lines, f)
		}
	}
	return lines
}

// distance bounds CLOCK_REALTIME minus CLOCK_BOOTTIME in ns, read between two readings of the other clock.
type distance struct{ least, most int64 }

func (d distance) middle() int64 { return (d.least + d.most) / 2 }

// bootToWall returns the offset from nsecs to nanoseconds since 1970. nsecs is CLOCK_BOOTTIME (bpf_ktime_get_boot_ns,
// since bpftrace 0.11 and Linux 5.8). The offset is constant until the wall clock is set.
func bootToWall() distance {
	var before, now, after unix.Timespec
	d := distance{-1 << 62, 1 << 62}
	for range 100 {
		_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &before)
		_ = unix.ClockGettime(unix.CLOCK_REALTIME, &now)
		_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &after)
		d.least, d.most = max(d.least, now.Nano()-after.Nano()), min(d.most, now.Nano()-before.Nano())
	}
	return d
}
