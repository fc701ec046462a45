package gather

import (
	"bytes"
	"debug/elf"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/test/harness"
)

// dynamic is a program of this machine with libraries.
func dynamic(t *testing.T) (content []byte, interpreter string) {
	t.Helper()
	file, err := exec.LookPath("true")
	harness.Check(t, err)
	content, err = os.ReadFile(file)
	harness.Check(t, err)
	e := harness.Must(elf.NewFile(bytes.NewReader(content)))(t)
	for _, p := range e.Progs {
		if p.Type == elf.PT_INTERP {
			name := harness.Must(io.ReadAll(p.Open()))(t)
			return content, strings.TrimRight(string(name), "\x00")
		}
	}
	t.Fatalf("%s needs no libraries", file)
	return nil, ""
}

// Both texts are equally long.
func replaced(t *testing.T, content []byte, from, to string) []byte {
	t.Helper()
	if !bytes.Contains(content, []byte(from)) || len(from) != len(to) {
		t.Fatalf("there is no %q for %q", from, to)
	}
	return bytes.ReplaceAll(content, []byte(from), []byte(to))
}

// Each program is also started.
func TestWhyAProgramCannotBeStarted(t *testing.T) {
	harness.Root(t)
	sound, loader := dynamic(t)
	foreign := bytes.Clone(sound)
	foreign[18], foreign[19] = byte(elf.EM_XTENSA), 0 // e_machine; big-endian machines read another foreign one
	dir := t.TempDir()
	plain := view{sure: true}
	shell := filepath.Join(dir, "shell")
	harness.Check(t, os.WriteFile(shell, replaced(t, sound, loader, loader[:len(loader)-1]+"x"), 0o755))
	for name, test := range map[string]struct {
		content     []byte
		fault       event.Fault
		errno       error
		loads, says string
	}{
		"sound":                             {content: sound},
		"a script":                          {content: []byte("#! /bin/sh -e\nexit 0\n")},
		"a script of a script":              {content: []byte("#!" + filepath.Join(dir, "a-script-of-its-own") + "\n")},
		"another architecture":              {content: foreign, fault: event.FaultArchitecture, errno: unix.ENOEXEC, says: "is built for xtensa, this node is "},
		"neither program nor script":        {content: []byte("x"), fault: event.FaultFormat, errno: unix.ENOEXEC},
		"no loader":                         {content: replaced(t, sound, loader, loader[:len(loader)-1]+"x"), fault: event.FaultInterpreter, errno: unix.ENOENT, says: "x, which does not exist"},
		"no interpreter":                    {content: []byte("#!/nowhere/python3\n"), fault: event.FaultInterpreter, errno: unix.ENOENT, says: "interpreter /nowhere/python3,"},
		"line ends of Windows":              {content: []byte("#!/bin/sh\r\nexit 0\r\n"), fault: event.FaultInterpreter, errno: unix.ENOENT, says: "first line ends in a carriage return"},
		"the interpreter's loader":          {content: []byte("#!" + shell + "\n"), fault: event.FaultInterpreter, errno: unix.ENOENT, says: shell},
		"a missing library":                 {content: replaced(t, sound, "libc.so.6\x00", "libc.so.0\x00"), fault: event.FaultLibrary, loads: "libc.so.0", says: "the library libc.so.0"},
		"a library that is too old for it":  {content: replaced(t, sound, "GLIBC_2.34\x00", "GLIBC_9.34\x00"), fault: event.FaultVersion, loads: "GLIBC_9.34", says: "needs GLIBC_9.34, which /"},
		"a text that looks like a library":  {content: append(bytes.Clone(sound), "libnowhere.so.1\x00"...)},
		"bytes of another machine's, at 18": {content: append([]byte("#!/bin/sh\nexit 0\n#"), 0xb7, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "plugin")
			harness.Check(t, os.WriteFile(filepath.Join(dir, "a-script-of-its-own"), []byte("#!/bin/sh\n"), 0o755))
			harness.Check(t, os.WriteFile(file, test.content, 0o755))
			out, err := exec.Command(file).CombinedOutput()
			if test.errno != nil && !errors.Is(err, test.errno) || test.loads != "" && !strings.Contains(string(out), test.loads) || test.fault == "" && err != nil {
				t.Fatalf("started: %v\n%s", err, out)
			}
			wrong, there := wrongWith(plain, "plugin", []string{filepath.Dir(file)})
			if !there {
				t.Fatal("it is not there")
			}
			if wrong == nil {
				if test.fault != "" {
					t.Fatalf("nothing is found, want %s", test.fault)
				}
				return
			}
			if says, _ := judge.Unstartable(*wrong); wrong.Fault != test.fault || !strings.Contains(says, test.says) {
				t.Errorf("%s: %s", wrong.Fault, says)
			}
		})
	}
}

// The mount refuses, not the mode.
func TestAProgramOnAMountThatRefuses(t *testing.T) {
	harness.Root(t)
	sound, _ := dynamic(t)
	dir := t.TempDir()
	harness.Check(t, unix.Mount("none", dir, "tmpfs", unix.MS_NOEXEC, ""))
	t.Cleanup(func() { harness.Check(t, unix.Unmount(dir, 0)) })
	file := filepath.Join(dir, "bin", "plugin")
	harness.Check(t, os.Mkdir(filepath.Dir(file), 0o755))
	harness.Check(t, os.WriteFile(file, sound, 0o755))
	look := func() *event.Program {
		wrong, _ := wrongWith(view{sure: true}, "plugin", []string{filepath.Dir(file)})
		return wrong
	}
	if err := exec.Command(file).Run(); !errors.Is(err, unix.EACCES) {
		t.Fatal(err)
	}
	wrong := look()
	if wrong == nil || wrong.Fault != event.FaultMount || wrong.Has != dir {
		t.Fatalf("%+v", wrong)
	}
	_, remedy := judge.Unstartable(*wrong)
	if out, err := exec.Command("sh", "-c", remedy).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", remedy, err, out)
	}
	if wrong := look(); wrong != nil {
		t.Errorf("after its remedy: %+v", wrong)
	}
	harness.Check(t, exec.Command(file).Run())
}

// Each 16th, and those with library directories of their own, have no fault.
func TestTheProgramsOfThisMachine(t *testing.T) {
	files := harness.Must(filepath.Glob("/usr/*bin/*"))(t)
	looked := 0
	for i, file := range files {
		if i%16 != 0 && !strings.HasSuffix(file, "/java") && !strings.HasSuffix(file, "/systemd") {
			continue
		}
		if info, err := os.Stat(file); err != nil || !runnable(info) || info.Size() == 0 {
			continue
		}
		looked++
		if wrong := faultOf(view{sure: true}, file); wrong != nil {
			t.Errorf("%+v", wrong)
		}
	}
	t.Logf("%d programs", looked)
}

// Whatever it was built for.
func TestAProgramForWhichTheKernelWasToldOfAnInterpreter(t *testing.T) {
	const arm = "enabled\ninterpreter /usr/bin/qemu-aarch64\nflags: OCF\noffset 0\n" +
		"magic 7f454c460201010000000000000000000200b700\nmask ffffffffffffff00fffffffffffffffffeffffff\n"
	head := []byte("\x7fELF\x02\x01\x01\x03\x00\x00\x00\x00\x00\x00\x00\x00\x03\x00\xb7\x00\x01")
	for name, test := range map[string]struct {
		entry, file string
		head        []byte
		takes       bool
	}{
		"it":               {arm, "/x", head, true},
		"disabled":         {strings.Replace(arm, "enabled", "disabled", 1), "/x", head, false},
		"another machine":  {arm, "/x", bytes.Replace(head, []byte{0xb7}, []byte{0x3e}, 1), false},
		"a shorter file":   {arm, "/x", head[:8], false},
		"by its extension": {"enabled\ninterpreter /usr/bin/wine\nflags: \nextension .exe\n", "/x.exe", nil, true},
		"another":          {"enabled\ninterpreter /usr/bin/wine\nflags: \nextension .exe\n", "/x", nil, false},
		"a hostile one":    {"enabled\noffset -9\nmagic 7f\n", "/x", head, false},
	} {
		harness.Equal(t, takes([]byte(test.entry), test.file, test.head), test.takes, name)
	}
}
