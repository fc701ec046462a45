// Package netlinktest encodes netlink messages for tests of their decoders.
package netlinktest

import (
	"encoding/binary"

	"github.com/mdlayher/netlink"
)

// Message returns a message with a fixed header and, if fill is set, attributes. Its sequence is 3.
func Message(kind netlink.HeaderType, flags netlink.HeaderFlags, head any, fill func(*netlink.AttributeEncoder)) []byte {
	data := must(binary.Append(nil, binary.NativeEndian, head))
	if fill != nil {
		data = append(data, Attributes(fill)...)
	}
	header := netlink.Header{Length: uint32(16+len(data)+3) &^ 3, Type: kind, Flags: flags, Sequence: 3}
	return must((&netlink.Message{Header: header, Data: data}).MarshalBinary())
}

// Attributes returns the attributes that fill adds.
func Attributes(fill func(*netlink.AttributeEncoder)) []byte {
	ae := netlink.NewAttributeEncoder()
	fill(ae)
	return must(ae.Encode())
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}
