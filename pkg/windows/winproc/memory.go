package winproc

import (
	"encoding/binary"
	"errors"
	"strings"

	"github.com/cniscope/cniscope/pkg/windows/etw"
)

// Memory reads a process's memory.
type Memory interface {
	// Block returns the address of the process environment block (PEB), and whether it is of a 32-bit program on 64-bit
	// Windows.
	Block() (address uint64, narrow bool, err error)
	Read(address uint64, b []byte) error
}

// Parameters are a process's raw start parameters.
type Parameters struct {
	CommandLine string
	Environment []string
	// Truncated means that the environment exceeded its bound.
	Truncated bool
}

// ErrEarly means that parameters are not written yet.
var ErrEarly = errors.New("not started yet")

const (
	// Bytes. CreateProcess allows 32,767 characters; an environment may name thousands of services.
	environmentMax = 512 << 10
	commandMax     = 64 << 10
)

type layout struct {
	word uint64
	// parameters is RTL_USER_PROCESS_PARAMETERS in the PEB, to which the others refer.
	parameters, command, environment, size uint64
}

// From winternl.h and golang.org/x/sys/windows (tested); EnvironmentSize exists since Windows Vista.
var (
	wide   = layout{word: 8, parameters: 0x20, command: 0x70, environment: 0x80, size: 0x3f0}
	narrow = layout{word: 4, parameters: 0x10, command: 0x40, environment: 0x48, size: 0x290}
)

// Told reads start parameters. ErrEarly means to retry.
func Told(m Memory) (p Parameters, err error) {
	at, small, err := m.Block()
	if err != nil {
		return p, err
	}
	l := wide
	if small {
		l = narrow
	}
	r := words{m: m, word: l.word}
	if at = r.pointer(at + l.parameters); r.err == nil && at == 0 {
		return p, ErrEarly
	}
	environment, size := r.pointer(at+l.environment), r.pointer(at+l.size)
	if r.err == nil && (environment == 0 || size == 0) {
		return p, ErrEarly
	}
	block := r.read(environment, min(size, environmentMax)&^1)
	p.Environment, p.Truncated = variables(block), size > environmentMax
	var length [8]byte // UNICODE_STRING: length, capacity, pointer
	copy(length[:], r.read(at+l.command, 2))
	command := r.read(r.pointer(at+l.command+l.word), min(binary.LittleEndian.Uint64(length[:]), commandMax)&^1)
	p.CommandLine, _, _ = etw.UTF16(command)
	return p, r.err
}

type words struct {
	m    Memory
	word uint64
	err  error
}

func (r *words) read(at, n uint64) []byte {
	b := make([]byte, n)
	if r.err == nil {
		r.err = r.m.Read(at, b)
	}
	return b
}

func (r *words) pointer(at uint64) uint64 {
	var b [8]byte
	copy(b[:], r.read(at, r.word))
	return binary.LittleEndian.Uint64(b[:])
}

// variables reads an environment block, which an empty string ends. It drops cmd.exe's names, which begin with "=".
func variables(block []byte) (all []string) {
	for {
		variable, rest, _ := etw.UTF16(block)
		if variable == "" {
			return all
		}
		if variable[0] != '=' {
			all = append(all, variable)
		}
		block = rest
	}
}

// split follows Go and Microsoft's C library.
func split(line string) (args []string) {
	line = strings.TrimLeft(line, " \t")
	if line == "" {
		return nil
	}
	// It ends at a quote or blank, without escapes.
	if rest, quoted := strings.CutPrefix(line, `"`); quoted {
		name, after, _ := strings.Cut(rest, `"`)
		args, line = append(args, name), after
	} else {
		end := strings.IndexAny(line, " \t")
		if end < 0 {
			end = len(line)
		}
		args, line = append(args, line[:end]), line[end:]
	}
	for line = strings.TrimLeft(line, " \t"); line != ""; line = strings.TrimLeft(line, " \t") {
		var arg string
		arg, line = argument(line)
		args = append(args, arg)
	}
	return args
}

// argument splits off the first argument. Before a quote, two backslashes make one, and an odd one makes the quote
// literal. Within quotes, two quotes make one.
func argument(line string) (arg, rest string) {
	var b strings.Builder
	quoted := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\':
			n := len(line[i:]) - len(strings.TrimLeft(line[i:], `\`))
			i += n - 1
			if i+1 >= len(line) || line[i+1] != '"' {
				b.WriteString(line[i-n+1 : i+1])
				continue
			}
			b.WriteString(strings.Repeat(`\`, n/2))
			if n%2 == 1 {
				b.WriteByte('"')
				i++
			}
		case c == '"' && quoted && i+1 < len(line) && line[i+1] == '"':
			b.WriteByte('"')
			i++
		case c == '"':
			quoted = !quoted
		case (c == ' ' || c == '\t') && !quoted:
			return b.String(), line[i:]
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), ""
}

// slashed also removes the kernel's prefix.
func slashed(file string) string {
	file = strings.ReplaceAll(file, `\`, "/")
	for _, mark := range []string{"//?/", "/??/"} {
		file = strings.TrimPrefix(file, mark)
	}
	return file
}

// program returns a path as CNI configurations have it: with slashes, without ".exe".
func program(file string) string {
	file = slashed(file)
	if end := len(file) - len(".exe"); end > 0 && strings.EqualFold(file[end:], ".exe") {
		return file[:end]
	}
	return file
}
