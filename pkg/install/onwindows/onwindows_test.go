package onwindows

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/private"
)

// machine is a node in memory. It fails at the write that is counted down to 0.
type machine struct {
	things  map[Thing]string
	runs    bool
	failsAt int // 0: never
	refuses bool
	// interrupt is called before each write, and when a service is started.
	interrupt func()
}

func (m *machine) Read(t Thing) ([]byte, error) {
	if data, ok := m.things[t]; ok {
		return []byte(data), nil
	}
	return nil, nil
}

func (m *machine) Write(t Thing, data []byte) error {
	if m.interrupt != nil {
		m.interrupt()
	}
	if m.failsAt--; m.failsAt == 0 {
		m.things[t] = "half of it"
		return errors.New("the disk is full")
	}
	if data != nil {
		m.things[t] = string(data)
		return nil
	}
	if t.Kind == Folder {
		for other := range m.things {
			if other.Kind != Environment && strings.HasPrefix(other.Name, t.Name+`\`) {
				return nil // it is not empty
			}
		}
	}
	delete(m.things, t)
	return nil
}

func (m *machine) Start(ctx context.Context, _ string) error {
	if m.interrupt != nil {
		m.interrupt()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if m.refuses {
		return errors.New("it does not start")
	}
	m.runs = true
	return nil
}

func (m *machine) Stop(ctx context.Context, _ string) (bool, error) {
	if ctx.Err() != nil {
		return m.runs, ctx.Err()
	}
	ran := m.runs
	m.runs = false
	return ran, nil
}

var environment = Thing{Environment, runtime}

// fresh is a node with a containerd whose service has variables of somebody's.
func fresh() *machine {
	return &machine{things: map[Thing]string{
		{Service, runtime}: "{}\n",
		environment:        "HTTP_PROXY=http://proxy:3128\notel_exporter_otlp_endpoint=http://old:4317\n",
	}}
}

func options(program string) Options {
	return Options{
		Choice: Choice{Tracing: "http://127.0.0.1:4318"}, Program: []byte(program + "\x00"),
		ProgramFiles: `C:\Program Files`, ProgramData: `C:\ProgramData`,
	}
}

func install(t *testing.T, m *machine, o Options) *Plan {
	t.Helper()
	p, err := New(m, o)
	if err == nil {
		err = p.Apply(context.Background(), m)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func uninstall(t *testing.T, m *machine, purge bool) *Plan {
	t.Helper()
	p, err := NewRemoval(m, options(""), purge)
	if err == nil {
		err = p.Apply(context.Background(), m)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *Plan) said() (all []string) {
	for _, s := range p.Steps {
		all = append(all, string(s.Does)+" "+s.String())
	}
	return all
}

func TestAnInstallationIsUndoneByteForByte(t *testing.T) {
	m := fresh()
	p := install(t, m, options("one"))
	want := []string{
		`new C:\ProgramData\cniscope`, `new C:\Program Files\cniscope`, `new C:\Program Files\cniscope\cniscope.exe`,
		`new C:\ProgramData\cniscope\cniscope.toml`, `new eventsource of cniscope`, `new service of cniscope`, `changed environment of containerd`,
	}
	if got := p.said(); !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
	if got := m.things[environment]; got != "HTTP_PROXY=http://proxy:3128\nOTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318\nOTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf\n" {
		t.Errorf("the environment:\n%s", got)
	}
	if got := m.things[Thing{Folder, `C:\ProgramData\cniscope`}]; got != private.Protected || !m.runs {
		t.Errorf("the folder is %q, the service runs: %t", got, m.runs)
	}
	m.things[Thing{Folder, `C:\ProgramData\cniscope\run`}] = "" // as cniscope leaves it
	m.things[Thing{File, `C:\ProgramData\cniscope\run\node.lock`}] = "pid 7\n"
	uninstall(t, m, false)
	if !maps.Equal(m.things, fresh().things) || m.runs {
		t.Errorf("left: %q", m.things)
	}
}

func TestInstallingAgainChangesNothingAndUpgradesTheProgram(t *testing.T) {
	m := fresh()
	install(t, m, options("one"))
	if p := install(t, m, options("one")); p.Changes() {
		t.Errorf("the second time: %q\n%s", p.said(), p.Diff())
	}
	m.things[Thing{File, `C:\ProgramData\cniscope\cniscope.toml`}] = "[log]\nlevel = \"debug\"\n"
	p := install(t, m, options("two"))
	for _, want := range []string{`changed C:\Program Files\cniscope\cniscope.exe`, `kept C:\ProgramData\cniscope\cniscope.toml`} {
		if !slices.Contains(p.said(), want) {
			t.Errorf("%q lacks %s", p.said(), want)
		}
	}
	uninstall(t, m, true)
	if !maps.Equal(m.things, fresh().things) {
		t.Errorf("left: %q", m.things)
	}
}

func TestAChoiceIsRememberedAndTakenBack(t *testing.T) {
	m := fresh()
	install(t, m, options("one"))
	if c, installed, err := Remembered(m, options("")); err != nil || !installed || c.Tracing != "http://127.0.0.1:4318" {
		t.Errorf("%+v, %t, %v", c, installed, err)
	}
	other := options("one")
	other.Tracing = "https://collector:4317"
	install(t, m, other)
	if got := m.things[environment]; !strings.Contains(got, "ENDPOINT=https://collector:4317\n") || !strings.Contains(got, "PROTOCOL=grpc\n") {
		t.Errorf("another choice:\n%s", got)
	}
	off := options("one")
	off.Tracing = ""
	install(t, m, off)
	if got := m.things[environment]; got != fresh().things[environment] {
		t.Errorf("taken back:\n%s", got)
	}
}

// Whatever fails, and wherever: the node is as it was.
func TestAFailureAnywhereChangesNothing(t *testing.T) {
	for at := 1; ; at++ {
		m := fresh()
		p, err := New(m, options("one"))
		if err != nil {
			t.Fatal(err)
		}
		if m.failsAt = at; at == len(p.changes)+1 {
			m.refuses, m.failsAt = true, 0
		}
		err = p.Apply(context.Background(), m)
		if m.failsAt > 0 && !m.refuses {
			return
		}
		if err == nil || !strings.HasSuffix(err.Error(), "everything is as it was before") {
			t.Errorf("at %d: %v", at, err)
		}
		if !maps.Equal(m.things, fresh().things) || m.runs {
			t.Errorf("at %d, left: %q", at, m.things)
		}
		if m.refuses {
			return
		}
	}
}

// Ctrl-C anywhere, up to while the service starts: the node is as it was.
func TestAnInterruptionChangesNothing(t *testing.T) {
	for _, from := range []*machine{fresh(), func() *machine { m := fresh(); install(t, m, options("one")); return m }()} {
		was, ran := maps.Clone(from.things), from.runs
		p, err := New(from, options("two"))
		if err != nil {
			t.Fatal(err)
		}
		for at := range len(p.changes) + 1 {
			ctx, cancel := context.WithCancel(t.Context())
			from.interrupt = func() {
				if at--; at < 0 {
					cancel()
				}
			}
			err := p.Apply(ctx, from)
			cancel()
			if !errors.Is(err, context.Canceled) || !strings.HasSuffix(err.Error(), "everything is as it was before") {
				t.Errorf("at %d: %v", at, err)
			}
			if !maps.Equal(from.things, was) || from.runs != ran {
				t.Errorf("at %d, left: %q; runs: %t", at, from.things, from.runs)
			}
		}
		from.interrupt = nil
	}
}

// Killed anywhere in an upgrade, it leaves what the next installation, and the removal, know for their own.
func TestAnUpgradeThatIsCutOffIsTakenBack(t *testing.T) {
	other, off := options("two"), options("two")
	other.Tracing, off.Tracing = "https://collector:4317", ""
	for _, to := range []Options{options("two"), other, off} {
		upgrade := func() (*machine, *Plan) {
			m := fresh()
			install(t, m, options("one"))
			p, err := New(m, to)
			if err != nil {
				t.Fatal(err)
			}
			return m, p
		}
		_, whole := upgrade()
		for done := range len(whole.changes) + 1 {
			for _, again := range []bool{false, true} {
				m, p := upgrade()
				for _, c := range p.changes[:done] {
					if err := m.Write(c.Thing, c.after); err != nil {
						t.Fatal(err)
					}
				}
				if again {
					install(t, m, to)
					if p := install(t, m, to); p.Changes() || m.things[Thing{File, to.program()}] != string(to.Program) {
						t.Errorf("cut off after %d, installed, and again: %q", done, p.said())
					}
				}
				uninstall(t, m, false)
				if !maps.Equal(m.things, fresh().things) {
					t.Errorf("cut off after %d of %d, again: %t, left: %q", done, len(p.changes), again, m.things)
				}
			}
		}
	}
}

// A service that somebody made start by hand goes with its program; one that runs another program stays.
func TestAServiceGoesWithItsProgram(t *testing.T) {
	for change, stays := range map[[2]string]bool{{"automatic", "manual"}: false, {`\\cniscope.exe`, `\\other.exe`}: true} {
		m := fresh()
		install(t, m, options("one"))
		service := Thing{Service, name}
		changed := strings.Replace(m.things[service], change[0], change[1], 1)
		if changed == m.things[service] {
			t.Fatalf("no %s in %s", change[0], changed)
		}
		m.things[service] = changed
		uninstall(t, m, false)
		if _, is := m.things[service]; is != stays {
			t.Errorf("with %s it stays: %t", change[1], is)
		}
	}
}

func TestWhatSomebodyChangedStays(t *testing.T) {
	m := fresh()
	install(t, m, options("one"))
	toml := Thing{File, `C:\ProgramData\cniscope\cniscope.toml`}
	m.things[toml] = "mine"
	m.things[environment] = "HTTP_PROXY=http://other:3128\n" + strings.TrimPrefix(m.things[environment], "HTTP_PROXY=http://proxy:3128\n") + "MINE=1\n"
	p := uninstall(t, m, false)
	if !slices.Contains(p.said(), "kept "+toml.Name) || m.things[toml] != "mine" {
		t.Errorf("%q", p.said())
	}
	if got, want := m.things[environment], "HTTP_PROXY=http://other:3128\notel_exporter_otlp_endpoint=http://old:4317\nMINE=1\n"; got != want {
		t.Errorf("the environment is\n%swant\n%s", got, want)
	}
}

func TestWhatIsInTheWayIsNamed(t *testing.T) {
	for in, want := range map[Thing]string{
		{Service, "cniscope"}:                                "sc.exe delete cniscope",
		{File, `C:\Program Files\cniscope\cniscope.exe`}:     "remove it",
		{Folder, `C:\ProgramData\cniscope`}:                  "others than administrators can open it",
		{File, `C:\ProgramData\cniscope\install.json`}:       "somebody else's",
		{Kind: Service, Name: "containerd" + " (not there)"}: "",
	} {
		m := fresh()
		m.things[in] = "somebody's"
		_, err := New(m, options("one"))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", in, err)
		}
	}
	m := fresh()
	delete(m.things, Thing{Service, runtime})
	if _, err := New(m, options("one")); err == nil || !strings.Contains(err.Error(), "no service containerd") {
		t.Error(err)
	}
	wrong := options("one")
	wrong.Tracing = "collector:4317"
	if _, err := New(m, wrong); err == nil || !strings.Contains(err.Error(), "want a URL") {
		t.Error(err)
	}
}

func TestADiffShowsEverything(t *testing.T) {
	p, err := New(fresh(), options("one"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"--- nothing\n+++ C:\\ProgramData\\cniscope\n", "+" + private.Protected, "+++ C:\\Program Files\\cniscope\\cniscope.exe\n+ 4 bytes, sha256 ",
		`+#dir = "C:\\ProgramData\\cniscope\\run"`, "--- environment of containerd\n+++ environment of containerd\n",
		"-otel_exporter_otlp_endpoint=http://old:4317\n", "+OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318\n", `+  "runs": "\"C:\\Program Files\\cniscope\\cniscope.exe\" run",`,
	} {
		if !strings.Contains(p.Diff(), want) {
			t.Errorf("lacks %q", want)
		}
	}
	if strings.Contains(p.Diff(), "proxy:3128") {
		t.Error("it has what a variable of somebody else is")
	}
	if t.Failed() {
		fmt.Println(p.Diff())
	}
}
