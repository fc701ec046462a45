//go:build linux

package files

import (
	"compress/gzip"
	"fmt"
	"io"
	"strings"
)

type file struct {
	lines  func(w io.Writer, n int)
	packed int
	says   string
}

const head = `{"cniscope":"recording","version":1,"writer":"0","options":{"timeline":{"Settle":1000000000,"MaxHold":600000000000,` +
	`"Processes":100000000,"Operations":100000000,"Spans":100000000}},"clock":{"mono":1,"wall":1795197942224103125}}` + "\n"

const refused = "limits.operations = 100000000 cannot be"

// after writes the header, then the result of each for the numbers from 0 on.
func after(each func(w io.Writer, n int)) func(io.Writer, int) {
	return func(w io.Writer, n int) {
		if n == 0 {
			fmt.Fprint(w, head)
		}
		each(w, n)
	}
}

const ms = 1_000_000

func root(w io.Writer, at int, process, container string) {
	fmt.Fprintf(w, `{"t":%d,"exec":{"process":%q,"parent":"1@1","pid":1,"ppid":1,"started":%d,"root":true,"file":"/b/x","name":"x","in_path":true,"call":{"command":"ADD","container_id":%q,"ifname":"e","pod":{"namespace":"n","name":%q}}}}`+"\n", at, process, at, container, container)
}

func command(w io.Writer, at int, process, parent, name, more string) {
	fmt.Fprintf(w, `{"t":%d,"fork":{"process":%q,"parent":%q}}`+"\n", at, process, parent)
	fmt.Fprintf(w, `{"t":%d,"exec":{"process":%q,"parent":%q,"file":"/b/y","name":%q%s}}`+"\n", at, process, parent, name, more)
}

func exit(w io.Writer, at int, process string, code int) {
	fmt.Fprintf(w, `{"t":%d,"exit":{"process":%q,"code":%d}}`+"\n", at, process, code)
}

func tick(w io.Writer, at int) { fmt.Fprintf(w, `{"t":%d,"tick":{}}`+"\n", at) }

func id(n int) string { return fmt.Sprintf("%d@1", n) }

// strung is a list of strings nearly as long as an event may be.
var strung = `,"args":["` + strings.Join(strings.Split(strings.Repeat("a", 3500), ""), `","`) + `","` + strings.Repeat("b", 4000) + `"]`

var files = map[string]file{
	"one line that does not end": {
		func(w io.Writer, n int) {
			if n == 0 {
				fmt.Fprint(w, head, `{"t":1,"tick":{"x":"`)
			}
			fmt.Fprint(w, strings.Repeat("x", 1<<16))
		}, gzip.BestCompression, "longer than",
	},
	"a header that does not end": {
		func(w io.Writer, _ int) { fmt.Fprint(w, strings.Repeat(" ", 1<<16)) }, gzip.BestCompression, "not a cniscope recording",
	},
	"calls that fail": {after(func(w io.Writer, n int) {
		root(w, n*ms, id(n), id(n))
		exit(w, n*ms+1, id(n), 1)
		if n%100 == 0 {
			tick(w, n*ms+2)
		}
	}), gzip.BestCompression, refused},
	"calls that never end": {after(func(w io.Writer, n int) {
		root(w, n, id(n), id(n))
		for i := range 100 {
			command(w, n, fmt.Sprintf("%d.%d", n, i), id(n), "y", "")
		}
	}), gzip.BestCompression, refused},
	"a call of many programs": {after(func(w io.Writer, n int) {
		if n == 0 {
			root(w, 1, id(0), "c")
		}
		command(w, n, fmt.Sprint("p", n), id(0), fmt.Sprint("y", n), "")
		exit(w, n+1, fmt.Sprint("p", n), 0)
	}), gzip.BestCompression, refused},
	"a process in a process": {after(func(w io.Writer, n int) {
		if n == 0 {
			root(w, 1, id(0), "c")
		}
		command(w, n+2, id(n+1), id(n), "y", "")
	}), gzip.BestCompression, refused},
	"long arguments": {after(func(w io.Writer, n int) {
		if n%100 == 0 {
			root(w, n*ms, id(n), id(n))
		}
		command(w, n*ms, fmt.Sprint("p", n), id(n-n%100), "y", strung)
		if n%1000 == 999 {
			for i := range 10 {
				exit(w, n*ms, id(n-n%1000+100*i), 1)
			}
			tick(w, n*ms+60_000*ms)
		}
	}), gzip.BestCompression, refused},
	"names that all differ": {after(func(w io.Writer, n int) {
		name := fmt.Sprint(strings.Repeat("n", 1000), n)
		root(w, n*ms, id(n), name)
		command(w, n*ms, fmt.Sprint("p", n), id(n), name, "")
		fmt.Fprintf(w, `{"t":%d,"wait":{"process":%q,"start":%d,"kind":"lock","name":"flock","path":%q}}`+"\n", n*ms+5*ms, id(n), n*ms, name)
		exit(w, n*ms+6*ms, fmt.Sprint("p", n), 1)
		exit(w, n*ms+7*ms, id(n), 1)
		if n%100 == 99 {
			tick(w, n*ms+60_000*ms)
		}
	}), gzip.BestCompression, refused},
	"facts of one process": {after(func(w io.Writer, n int) {
		if n == 0 {
			root(w, 1, id(0), "c")
		}
		fmt.Fprintf(w, `{"t":%d,"request":{"process":"0@1","start":%d,"protocol":"rtnetlink","name":"RTM_NEWLINK","interface":{"name":"e%d"}}}`+"\n", n*ms, n*ms-1, n)
		fmt.Fprintf(w, `{"t":%d,"connect":{"process":"0@1","start":%d,"socket":"s%d","network":"unix","address":"/s%d"}}`+"\n", n*ms, n*ms-ms, n, n)
	}), gzip.BestCompression, refused},
	"sandboxes with long labels": {after(func(w io.Writer, n int) {
		fmt.Fprintf(w, `{"t":%d,"sandbox":{"phase":"running","id":"%d","labels":{"a%s":"x"}}}`+"\n", n, n, strings.Repeat(`":"","b`, 1<<16)+fmt.Sprint(n))
		fmt.Fprintf(w, `{"t":%d,"sandbox":{"phase":"running","id":"x%d","ips":["%s"]}}`+"\n", n, n, strings.Repeat(`1.1.1.1","`, 1<<16))
	}), gzip.BestCompression, refused},
	"nothing but ticks": {after(func(w io.Writer, n int) { tick(w, n) }), gzip.BestCompression, refused},
	"times that jump": {after(func(w io.Writer, n int) {
		at := []int{-1 << 63, 1<<63 - 1, 0, -1, n * ms}[n%5]
		root(w, at, id(n), fmt.Sprint(n%7))
		fmt.Fprintf(w, `{"t":%d,"clock":{"wall":%d}}`+"\n", at, -at)
		exit(w, -at, id(n), 1)
		tick(w, at)
	}), gzip.BestCompression, refused},
	"kinds that nobody knows": {after(func(w io.Writer, n int) {
		fmt.Fprintf(w, `{"t":%d,"x%d":[[[[[[[[[[]]]]]]]]]]}`+"\n", n, n)
	}), gzip.BestCompression, "of a kind this version does not know"},
	"an ordinary one": {honest(), gzip.BestSpeed, ""},
}
