package probe

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/agents"
	"github.com/cniscope/cniscope/pkg/probe/subprocess"
	"github.com/cniscope/cniscope/test/harness"
)

var acts = map[string]func(argument string) error{
	"lock": func(file string) error {
		f, err := os.OpenFile(file, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		return unix.Flock(int(f.Fd()), unix.LOCK_EX)
	},
	"sleep": func(string) error { time.Sleep(slept); return nil },
	"sysctl": func(string) error {
		runtime.LockOSThread()
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1\n"), 0)
	},
	"dial": func(address string) error {
		network, address, _ := strings.Cut(address, " ")
		c, err := net.Dial(network, address)
		if err != nil {
			return nil
		}
		defer c.Close()
		_, err = c.Read(make([]byte, 1))
		return err
	},
	// "network address": it prints where it listens, does what its input says, and then answers all.
	"server": func(at string) error {
		network, address, _ := strings.Cut(at, " ")
		l, err := net.Listen(network, address)
		if err != nil {
			return err
		}
		fmt.Println(l.Addr())
		var c net.Conn
		for in := bufio.NewScanner(os.Stdin); in.Scan() && err == nil; {
			switch what, file, _ := strings.Cut(in.Text(), " "); what {
			case "accept":
				c, err = l.Accept()
				fmt.Println(err)
			case "answer":
				_, _ = c.Write([]byte("x"))
				fmt.Println(c.Close())
			case "run":
				cmd := exec.Command(file)
				err = cmd.Start()
				fmt.Println(cmd.Process.Pid)
			}
		}
		for err == nil {
			if c, err = l.Accept(); err == nil {
				time.Sleep(20 * time.Millisecond)
				_, _ = c.Write([]byte("x"))
				c.Close()
			}
		}
		return err
	},
	"answer": func(file string) error {
		if _, err := io.ReadAll(os.Stdin); err != nil {
			return err
		}
		answer, err := os.ReadFile(file)
		fmt.Print(strings.TrimSuffix(string(answer), "\n"))
		return err
	},
}

func TestMain(m *testing.M) {
	acts["agent"], acts["flood"], acts["runtime"] = agentAct, flood, runtimeAct
	acts["unprivileged"] = attachAct
	acts["connector"] = func(string) error { return subprocess.Serve() }
	maps.Copy(acts, dialers)
	maps.Copy(acts, writers)
	maps.Copy(acts, talkers)
	maps.Copy(acts, subscribers)
	maps.Copy(acts, forgers)
	if act := acts[filepath.Base(os.Args[0])]; act != nil {
		if err := act(os.Getenv("ARGUMENT")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := harness.Host(m)
	if shared != nil {
		if err := shared.close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func acting(t *testing.T, act, argument string) *exec.Cmd {
	t.Helper()
	cmd := plugin(t, act, "")
	self := harness.Must(os.Executable())(t)
	harness.Check(t, os.Remove(cmd.Path))
	harness.Check(t, os.Symlink(self, cmd.Path))
	cmd.Env = append(cmd.Env, "ARGUMENT="+argument)
	cmd.Stderr = os.Stderr
	return cmd
}

func answerFile(t *testing.T, answer string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "answer")
	harness.Check(t, os.WriteFile(file, []byte(answer+"\n"), 0o600))
	return file
}

func run(t *testing.T, cmd *exec.Cmd, agents ...int) *observed {
	t.Helper()
	return observe(t, func(o *observed) {
		o.agents = agents
		if err := cmd.Run(); err != nil {
			t.Errorf("%s: %v", cmd.Path, err)
		}
	})
}

func all[B event.Body](o *observed) (found []B) {
	for _, e := range o.events {
		if b, ok := e.Body.(B); ok {
			found = append(found, b)
		}
	}
	return found
}

// samePath compares an exported path, which only shows known words, with the original.
func samePath(left, path string) bool {
	return filepath.Base(left) == filepath.Base(path) && strings.Count(left, "/") == strings.Count(path, "/")
}

func TestALockThatSomebodyHas(t *testing.T) {
	file := filepath.Join(t.TempDir(), "xtables.lock")
	holder := harness.Must(os.Create(file))(t)
	defer holder.Close()
	harness.Check(t, unix.Flock(int(holder.Fd()), unix.LOCK_EX))
	cmd := acting(t, "lock", file)
	o := observe(t, func(*observed) {
		harness.Check(t, cmd.Start())
		harness.Until(t, "it waits for the lock", func() bool { return waitsForALock(cmd.Process.Pid) })
		time.Sleep(5 * time.Millisecond) // long enough to be reported
		_ = unix.Flock(int(holder.Fd()), unix.LOCK_UN)
		_ = cmd.Wait()
	})
	waits := all[*event.Wait](o)
	for _, e := range o.events {
		w, ok := e.Body.(*event.Wait)
		if !ok || !samePath(w.Path, file) {
			continue
		}
		if w.Kind != event.WaitLock || w.Name != "flock" || w.Error != "" || w.Released || e.Time-w.Start < 1e6 {
			t.Errorf("%+v, %d ns", w, e.Time-w.Start)
		}
		if w.Holder == nil || w.Holder.Name != agents.Program(uint32(os.Getpid())) || int(w.Holder.PID) != os.Getpid() {
			t.Errorf("its holder: %+v", w.Holder)
		}
		return
	}
	t.Errorf("no wait for %s among %d", file, len(waits))
}

// waitsForALock reports whether a process waits: "1: -> FLOCK ADVISORY WRITE 4711 …" (proc_locks(5)).
func waitsForALock(pid int) bool {
	locks, _ := os.ReadFile("/proc/locks")
	for line := range strings.Lines(string(locks)) {
		if f := strings.Fields(line); len(f) > 5 && f[1] == "->" && f[5] == strconv.Itoa(pid) {
			return true
		}
	}
	return false
}

func TestALockThatIsFreeHasNoHolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lock")
	harness.Check(t, os.WriteFile(file, nil, 0o600))
	for _, w := range all[*event.Wait](run(t, acting(t, "lock", file))) {
		if samePath(w.Path, file) {
			if w.Holder != nil {
				t.Errorf("%+v", w.Holder)
			}
			return
		}
	}
	t.Error("the lock was not seen to be taken")
}

const slept = 80 * time.Millisecond

func init() { acts["nap"] = nap }

func TestASleep(t *testing.T) { sleeps(t, acting(t, "sleep", "")) }

// Go's scheduler takes naps. One that a busy CPU prolongs is still no sleep.
func TestANapOnABusyCPUIsNoSleep(t *testing.T) {
	o := run(t, acting(t, "nap", ""))
	if waits := all[*event.Wait](o); slices.ContainsFunc(waits, func(w *event.Wait) bool { return w.Kind == event.WaitSleep }) {
		t.Errorf("it slept: %s", printed(o, waits))
	}
}

// nap sleeps for 5 ms in a thread whose CPU is soon taken for 50 ms.
func nap(string) error {
	runtime.LockOSThread() // the main thread's sleeps count
	if unix.Gettid() == unix.Getpid() {
		done := make(chan error)
		go func() { done <- nap("") }()
		return <-done
	}
	var all, first unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return err
	}
	for cpu := 0; first.Count() == 0; cpu++ {
		if all.IsSet(cpu) {
			first.Set(cpu)
		}
	}
	ready := make(chan error)
	go func() {
		runtime.LockOSThread()
		fifo := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}
		ready <- errors.Join(unix.SchedSetaffinity(0, &first), unix.SchedSetAttr(0, &fifo, 0))
		short := unix.NsecToTimespec(int64(500 * time.Microsecond)) // too short to be reported
		_ = unix.Nanosleep(&short, nil)
		for end := time.Now().Add(50 * time.Millisecond); time.Now().Before(end); {
		}
	}()
	asked := unix.NsecToTimespec(int64(5 * time.Millisecond))
	return errors.Join(<-ready, unix.SchedSetaffinity(0, &first), unix.Nanosleep(&asked, nil))
}

func sleeps(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	o := run(t, cmd)
	var longest int64
	for _, e := range o.events {
		if w, ok := e.Body.(*event.Wait); ok && w.Kind == event.WaitSleep {
			longest = max(longest, e.Time-w.Start)
		}
	}
	if longest < int64(slept*7/8) {
		t.Errorf("the longest sleep took %d ns: %s", longest, printed(o, all[*event.Wait](o)))
	}
}

func TestASysctlInANamespaceOfItsOwn(t *testing.T) {
	o := run(t, acting(t, "sysctl", ""))
	settings, enters := all[*event.Setting](o), all[*event.Enter](o)
	if len(settings) != 1 || len(enters) != 1 {
		t.Fatalf("%d settings, %d namespaces entered", len(settings), len(enters))
	}
	s := settings[0]
	if s.Key != "net/ipv4/ip_forward" || s.Value != "1" || s.Error != "" || s.NetNS != enters[0].NetNS || s.NetNS.Key == "" {
		t.Errorf("%+v; entered %+v", s, enters[0])
	}
	if s.NetNS == o.execs()[0].NetNS {
		t.Error("it is the namespace that the plugin began in")
	}
}

func TestWhatAPluginReadsAndAnswers(t *testing.T) {
	for answer, want := range map[string]event.Result{
		`{"cniVersion":"1.0.0","interfaces":[{"name":"eth0"}],"ips":[{"address":"10.1.2.3/24"}],"routes":[{"dst":"0.0.0.0/0"}]}`: {
			CNIVersion: "1.0.0", IPs: []string{"10.1.2.3/24"}, Interfaces: []string{"eth0"}, Routes: []string{"0.0.0.0/0"},
		},
		`{"cniVersion":"1.1.0","code":11,"msg":"try again \u001b[31m","details":"token canary of 10.1.0.0/16 in pods"}`: {
			CNIVersion: "1.1.0", Code: 11, Message: `try again \x1b[31m; token ‹word 6› of 10.1.0.0/16 in pods`,
		},
		"canary: not JSON": {Invalid: "no valid JSON at byte 1 of 16"},
	} {
		cmd := acting(t, "answer", answerFile(t, answer))
		cmd.Stdin = strings.NewReader(`{"cniVersion":"1.0.0","name":"pods","type":"answer","ipam":{"type":"host-local","subnet":"10.1.0.0/16"},"token":"canary"}`)
		var out strings.Builder
		cmd.Stdout = &out
		o := run(t, cmd)
		if c := all[*event.Configuration](o); len(c) != 1 || c[0].Network != "pods" || c[0].Type != "answer" || c[0].IPAM != "host-local" || c[0].CNIVersion != "1.0.0" {
			t.Errorf("configuration: %s", printed(o, c))
		}
		results := all[*event.Result](o)
		if len(results) != 1 {
			t.Fatalf("%s: %d results", answer, len(results))
		}
		got := *results[0]
		got.Process = ""
		harness.Equal(t, fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want), answer)
		for _, e := range o.events {
			if strings.Contains(fmt.Sprintf("%+v", e.Body), "canary") {
				t.Errorf("it left the decoder: %+v", e.Body)
			}
		}
	}
}

// server is a process of its own: a shared probe must not follow the test.
type server struct {
	network, address string
	pid              int
	in               io.WriteCloser
	out              *bufio.Reader
}

// serve starts a server, which answers at once or follows commands.
func serve(t *testing.T, network, address string, atOnce bool) *server {
	t.Helper()
	cmd := actCmd(t, "server", network+" "+address, nil)
	s := &server{network: network, in: harness.Must(cmd.StdinPipe())(t), out: bufio.NewReader(harness.Must(cmd.StdoutPipe())(t))}
	s.pid = started(t, cmd).Pid
	s.address = s.says(t)
	if atOnce {
		harness.Check(t, s.in.Close())
	}
	return s
}

func (s *server) says(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(harness.Must(s.out.ReadString('\n'))(t))
}

func (s *server) does(t *testing.T, what string) string {
	t.Helper()
	_, err := fmt.Fprintln(s.in, what)
	harness.Check(t, err)
	return s.says(t)
}

func TestACallOfAnotherProcess(t *testing.T) {
	for network, address := range map[string]string{"unix": filepath.Join(t.TempDir(), "agent.sock"), "tcp": "127.0.0.1:0"} {
		s := serve(t, network, address, true)
		o := run(t, acting(t, "dial", network+" "+s.address), s.pid)
		connects, accepts, closes := all[*event.Connect](o), all[*event.Accept](o), all[*event.Close](o)
		if len(connects) != 1 || len(accepts) != 1 || len(closes) != 1 {
			t.Fatalf("%s: connects %s, accepts %s, closes %s", network, printed(o, connects), printed(o, accepts), printed(o, closes))
		}
		c, a := connects[0], accepts[0]
		if c.Network != network || c.Address != s.address && !samePath(c.Address, s.address) || c.Error != "" || c.Socket != a.Socket || c.Socket != closes[0].Socket {
			t.Errorf("%+v, %+v, %+v", c, a, closes[0])
		}
		if a.Agent.Name != agents.Program(uint32(s.pid)) || int(a.Agent.PID) != s.pid {
			t.Errorf("%s: answered by %+v", network, a.Agent)
		}
	}
}

func TestAPeerThatRefuses(t *testing.T) {
	for address, want := range map[string]string{
		"tcp " + serveAndStop(t):                       "ECONNREFUSED",
		"unix " + filepath.Join(t.TempDir(), "nobody"): "ENOENT",
	} {
		refused := ""
		for _, c := range all[*event.Connect](run(t, acting(t, "dial", address))) {
			if c.Address != "" { // else it precedes its connect
				refused += c.Error
			}
		}
		harness.Equal(t, refused, want, address)
	}
}

func serveAndStop(t *testing.T) string {
	t.Helper()
	l := harness.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	return l.Addr().String()
}
