package active

import (
	"fmt"
	"testing"
)

func TestNamesOfInterfacesAreBounded(t *testing.T) {
	n := NewInterfaces(10)
	for i := range uint32(100) {
		n.put(place{"1", i}, fmt.Sprint("eth", i))
		n.put(place{"1", i}, fmt.Sprint("net", i))
	}
	if len(n.names) != 10 || len(n.order) != 10 || n.names[place{"1", 99}] != "net99" {
		t.Errorf("%d names, in an order of %d", len(n.names), len(n.order))
	}
}
