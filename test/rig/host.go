//go:build linux

package rig

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/bits"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const ipForward = "/proc/sys/net/ipv4/ip_forward"

type host struct {
	IPForward string   `json:"ip_forward"`
	Firewall  []string `json:"firewall"`
	Made      []string `json:"made"`
}

func hostFile() string { return filepath.Join(root, "host.json") }

// rememberHost records what plugins leave behind by design, before the first rig: forwarding, shared chains.
func rememberHost() error {
	if _, err := os.Stat(hostFile()); err == nil {
		return nil
	}
	forward, err := os.ReadFile(ipForward)
	if err != nil {
		return fmt.Errorf("read the host's forwarding: %w", err)
	}
	firewall, err := furniture()
	if err != nil {
		return err
	}
	before := host{IPForward: strings.TrimSpace(string(forward)), Firewall: firewall}
	text, err := json.Marshal(before)
	if err != nil {
		return err
	}
	return os.WriteFile(hostFile(), text, 0o600)
}

func restoreHostIfLast(log *slog.Logger) error {
	rigs, err := placesOf(rigKind)
	if err != nil || len(rigs) > 0 {
		return err
	}
	text, err := os.ReadFile(hostFile())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read what the host was like: %w", err)
	}
	var before host
	if err := json.Unmarshal(text, &before); err != nil {
		return fmt.Errorf("%s: %w (remove the file if the host needs no restoring)", hostFile(), err)
	}
	log.Debug("restoring the host", "ip_forward", before.IPForward)
	errs := []error{removeFurniture(before.Firewall)}
	if now, err := os.ReadFile(ipForward); err == nil && strings.TrimSpace(string(now)) != before.IPForward {
		errs = append(errs, os.WriteFile(ipForward, []byte(before.IPForward), 0o644))
	}
	for _, dir := range slices.Backward(before.Made) {
		// Skips directories in use.
		if err := unix.Rmdir(dir); err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EBUSY) {
			errs = append(errs, fmt.Errorf("remove %s: %w", dir, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("restore the host: %w", err)
	}
	return os.Remove(hostFile())
}

// subnets are rig n's ranges: 64 of /16 in 10.192.0.0/10, a /20 per network, fd63:6e69 for IPv6.
func subnets(n int) []netip.Prefix {
	return []netip.Prefix{
		netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(192 + n), 0, 0}), 16),
		netip.PrefixFrom(netip.AddrFrom16([16]byte{0: 0xfd, 1: 0x63, 2: 0x6e, 3: 0x69, 5: byte(n)}), 48),
	}
}

// networksPerRig is the number of /20 in a /16.
const networksPerRig = 16

func netOf(n, i int, name, dataDir string) Net {
	if name == "" {
		name = fmt.Sprintf("rig%dnet%d", n, i)
	}
	v4, v6 := subnets(n)[0].Addr().As4(), subnets(n)[1].Addr().As16()
	v4[2] = byte(i << 4)
	v6[7] = byte(i)
	return Net{
		Name:    name,
		Bridge:  bridgeName(n, strconv.Itoa(i)),
		Subnet:  netip.PrefixFrom(netip.AddrFrom4(v4), 20),
		Subnet6: netip.PrefixFrom(netip.AddrFrom16(v6), 64),
		DataDir: dataDir,
	}
}

func bridgeName(n int, i string) string { return fmt.Sprintf("cniscope%dbr%s", n, i) }

// unrouted reports whether the host uses no address of rig n.
func unrouted(n int) bool {
	text, err := os.ReadFile("/proc/net/route")
	if err != nil {
		return true
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 8 {
			continue
		}
		dst, err1 := strconv.ParseUint(f[1], 16, 32)
		mask, err2 := strconv.ParseUint(f[7], 16, 32)
		if err1 != nil || err2 != nil || mask == 0 {
			continue
		}
		// Addresses have host byte order, little endian on all supported machines.
		addr := netip.AddrFrom4([4]byte{byte(dst), byte(dst >> 8), byte(dst >> 16), byte(dst >> 24)})
		if netip.PrefixFrom(addr, bits.OnesCount64(mask)).Overlaps(subnets(n)[0]) {
			return false
		}
	}
	return true
}
