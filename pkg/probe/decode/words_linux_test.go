package decode

import (
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/redact"
	"github.com/cniscope/cniscope/test/harness"
)

const panicked = `time="2026-11-26T20:00:00Z" level=info msg="adding a pod"
panic: runtime error: invalid memory address or nil pointer dereference
[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x46d8d2]

goroutine 1 [running]:
panic({0x4a5b20?, 0x52d7e0?})
	/usr/local/go/src/runtime/panic.go:785 +0x132
main.(*bridge).add(...)
	/src/plugins/main/bridge/main.go:41 +0x1d
main.main()
	/src/plugins/main/bridge/main.go:12 +0x17
`

// What programs wrote to standard error at their end.
func TestLastWords(t *testing.T) {
	for name, said := range map[string][2]string{
		"Go panics": {panicked, "panic: runtime error: invalid memory address or nil pointer dereference (main.go:41)"},
		"Go panics again": {
			"panic: a [recovered]\n\tpanic: b\n\ngoroutine 1 [running]:\n", "panic: a",
		},
		"Go's runtime gives up": {
			"fatal error: all goroutines are asleep - deadlock!\n\ngoroutine 1 [chan receive]:\nmain.main()\n\t/src/main.go:9 +0x1b\n",
			"fatal error: all goroutines are asleep - deadlock! (main.go:9)",
		},
		"Python raises": {
			"Traceback (most recent call last):\n  File \"/opt/cni/bin/hook\", line 12, in <module>\n    main()\n  File \"/opt/cni/bin/hook\", line 9, in main\n    raise KeyError('ips')\nKeyError: 'ips'\n",
			"KeyError: 'ips' (hook:9)",
		},
		"a shell finds no command": {"adding\n/opt/cni/bin/hook: line 3: ipset: command not found\n", "/opt/cni/bin/hook: line 3: ipset: command not found"},
		"the loader finds no version": {
			"/opt/cni/bin/hook: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.34' not found (required by /opt/cni/bin/hook)\n",
			"/opt/cni/bin/hook: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.34' not found (required by /opt/cni/bin/hook)",
		},
		"control: a word in a line": {"do not panic: it is only a log\n", "do not panic: it is only a log"},
		"control: a File in a log":  {"  File \"a\", line 1\nit failed\n", "it failed"},
		"control: it wrote nothing": {"", ""},
		"control: only empty lines": {"\n\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			words, file, line := lastWords(said[0])
			if file != "" {
				words += " (" + file + ":" + line + ")"
			}
			harness.Equal(t, words, said[1], "its last words")
		})
	}
}

// A plugin's standard error counts if it failed and did not say why, without secrets.
func TestStandardErrorOfAPlugin(t *testing.T) {
	for name, c := range map[string]struct {
		out, said string
		code      uint32
		want      string
	}{
		"it panicked":           {"", panicked, 2, "panic: runtime error: invalid memory address or nil pointer dereference (main.go:41)"},
		"a secret is taken out": {"", "panic: token Zm9vYmFyYmF6cXV4 is wrong\n", 2, "panic: token ‹base64 16› is wrong"},
		"a script's command":    {"", "/opt/cni/bin/hook: line 3: ipset: command not found\n", 127, "/opt/cni/bin/hook: line 3: ipset: command not found"},
		"a library's version": {
			"", "/opt/cni/bin/hook: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.34' not found (required by /opt/cni/bin/hook)\n", 1,
			"/opt/cni/bin/hook: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.34' not found (required by /opt/cni/bin/hook)",
		},
		"Python raises":                   {"", "Traceback (most recent call last):\n  File \"/opt/cni/bin/hook\", line 9, in main\nKeyError: 'ips'\n", 1, "KeyError: 'ips' (hook:9)"},
		"text where JSON should be":       {"some log\nnow=2024-02-15 20:28:32, token=Xq7Canary9ZtSecret, to retry\n", "level=info\n", 1, "now=2024-02-15 20:28:32, token=‹base64 18›, to retry"},
		"a panic after half of an answer": {`{"cniVersion":`, "panic: no\n", 2, "panic: no"},
		"control: text, and it succeeded": {"hello\n", "", 0, ""},
		"control: it said why":            {`{"code":11,"msg":"no such bridge"}`, "a log line\n", 1, ""},
		"control: it succeeded":           {`{"cniVersion":"1.0.0"}`, "a log line\n", 0, ""},
		"control: it only wrote to logs":  {"", "", 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := &streams{known: &redact.Call{}, said: []byte(c.said)}
			s.known.Await()
			s.in.WriteString(`{"name":"n","type":"hook"}`)
			s.configuration("1@1")
			s.out.WriteString(c.out)
			got := ""
			for _, e := range s.finish(1, &event.Exit{Process: "1@1", Code: c.code}) {
				r := e.Body.(*event.Result)
				got = r.Stderr
				if r.Invalid != "" {
					got += r.Message
				}
			}
			harness.Equal(t, got, c.want, "its words")
		})
	}
}

func TestLongStandardErrorIsBounded(t *testing.T) {
	s := &streams{known: &redact.Call{}, said: []byte(strings.Repeat("x ", maxSaid))}
	said := s.finish(1, &event.Exit{Process: "1@1", Code: 1})[0].Body.(*event.Result).Stderr
	if len(said) == 0 || len(said) > 700 {
		t.Errorf("%d bytes: %s", len(said), said)
	}
}
