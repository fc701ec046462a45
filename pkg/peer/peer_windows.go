package peer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Owned reports for each connection whether its other end is the processes': nil, ErrStranger, ErrGone, or another
// error.
func Owned(conns []*net.TCPConn, pids []int) []error {
	errs := make([]error, len(conns))
	owners, err := owners()
	for i, c := range conns {
		if err != nil {
			errs[i] = err
			continue
		}
		pid, known := owners[ends{addrPort(c.RemoteAddr()), addrPort(c.LocalAddr())}]
		switch {
		case !known:
			errs[i] = ErrGone
		case !slices.Contains(pids, int(pid)):
			errs[i] = ErrStranger
		}
	}
	return errs
}

type ends struct{ local, remote netip.AddrPort }

func owners() (map[ends]uint32, error) {
	all := map[ends]uint32{}
	for _, family := range []uint32{windows.AF_INET, windows.AF_INET6} {
		table, err := connections(family)
		if err != nil {
			return nil, fmt.Errorf("GetExtendedTcpTable: %w", err)
		}
		if family == windows.AF_INET {
			four(table, all)
		} else {
			six(table, all)
		}
	}
	return all, nil
}

func connections(family uint32) ([]byte, error) {
	const ownerPID = 4 // TCP_TABLE_OWNER_PID_CONNECTIONS (iprtrmib.h)
	call := windows.NewLazySystemDLL("iphlpapi.dll").NewProc("GetExtendedTcpTable")
	if err := call.Find(); err != nil {
		return nil, err
	}
	for size := uint32(64 << 10); ; {
		table := make([]byte, size)
		result, _, _ := call.Call(uintptr(unsafe.Pointer(&table[0])), uintptr(unsafe.Pointer(&size)), 0, uintptr(family),
			ownerPID, 0)
		switch err := windows.Errno(result); {
		case result == 0:
			return table, nil
		case !errors.Is(err, windows.ERROR_INSUFFICIENT_BUFFER):
			return nil, err
		}
		size += size / 4 // the table may grow
	}
}

func rows(table []byte, size int) (all [][]byte) {
	n := int(binary.LittleEndian.Uint32(table))
	for row := range slices.Chunk(table[4:], size) {
		if len(all) == n || len(row) < size {
			break
		}
		all = append(all, row)
	}
	return all
}

// four reads MIB_TCPROW_OWNER_PID (tcpmib.h): state, local and remote address and port, process.
func four(table []byte, all map[ends]uint32) {
	for _, r := range rows(table, 24) {
		at := func(i int) netip.AddrPort {
			return netip.AddrPortFrom(netip.AddrFrom4([4]byte(r[i:i+4])), binary.BigEndian.Uint16(r[i+4:]))
		}
		all[ends{at(4), at(12)}] = binary.LittleEndian.Uint32(r[20:])
	}
}

// six reads MIB_TCP6ROW_OWNER_PID: local and remote address, scope and port, state, process.
func six(table []byte, all map[ends]uint32) {
	for _, r := range rows(table, 56) {
		at := func(i int) netip.AddrPort {
			return netip.AddrPortFrom(netip.AddrFrom16([16]byte(r[i:i+16])), binary.BigEndian.Uint16(r[i+20:]))
		}
		all[ends{at(0), at(24)}] = binary.LittleEndian.Uint32(r[52:])
	}
}
