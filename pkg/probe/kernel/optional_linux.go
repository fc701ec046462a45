package kernel

import (
	"fmt"
	"slices"

	"github.com/cilium/ebpf/btf"
)

// optional is what the probe makes use of where the kernel has it.
var optional = []struct {
	feature string
	since   string // Linux
	there   func(*btf.Spec) bool
	without string
}{
	{
		"network namespace cookies", "5.12", netCookie,
		"a network namespace is told apart by its inode number, which may be used again",
	},
}

// lacking names what this kernel does not have. Everything else goes on.
func lacking(kernel *btf.Spec) (missing []Missing) {
	for _, o := range optional {
		if !o.there(kernel) {
			missing = append(missing, Missing{o.feature, fmt.Sprintf("needs Linux %s; %s", o.since, o.without)})
		}
	}
	return missing
}

// netCookie reports whether every network namespace has its cookie from the start. Before, it
// was an atomic64_t, zero until somebody asked for it.
func netCookie(kernel *btf.Spec) bool {
	var net *btf.Struct
	return kernel.TypeByName("net", &net) == nil && slices.ContainsFunc(net.Members, func(m btf.Member) bool {
		_, number := btf.As[*btf.Int](m.Type)
		return m.Name == "net_cookie" && number
	})
}
