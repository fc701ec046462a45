package spool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"github.com/cniscope/cniscope/pkg/disk"
)

// cursor is the position before which everything was exported. Its file has two slots in separate sectors, written in
// turn; the valid one with the higher serial counts, so a torn write leaves the other.
type cursor struct {
	at     Position
	serial uint64
	file   disk.File
}

const (
	cursorName = "cursor"
	slotSize   = 28
	sector     = 512 // atomic write unit
)

// open reads the cursor and locks its file until close. known is false without a valid slot.
func (c *cursor) open(root disk.FS) (known bool, err error) {
	if c.file, err = root.OpenFile(cursorName, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return false, err
	}
	if err := c.file.Lock(); errors.Is(err, disk.ErrLocked) {
		return false, ErrHeld
	} else if err != nil {
		return false, err
	}
	data := make([]byte, 2*sector)
	if _, err := c.file.ReadAt(data, 0); err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("read the cursor: %w", err)
	}
	for _, slot := range [][]byte{data[:slotSize], data[sector : sector+slotSize]} {
		serial := binary.LittleEndian.Uint64(slot)
		if serial > c.serial && binary.LittleEndian.Uint32(slot[24:]) == crc32.Checksum(slot[:24], castagnoli) {
			c.serial = serial
			c.at = Position{binary.LittleEndian.Uint64(slot[8:]), int64(binary.LittleEndian.Uint64(slot[16:]))}
		}
	}
	c.at.Offset = max(0, c.at.Offset)
	if c.serial > 0 {
		return true, nil
	}
	for range 2 { // allocate both slots while there is space
		if err := c.set(Position{}); err != nil {
			return false, err
		}
	}
	return false, nil
}

func (c *cursor) set(to Position) error {
	c.at = to
	c.serial++
	slot := binary.LittleEndian.AppendUint64(make([]byte, 0, slotSize), c.serial)
	slot = binary.LittleEndian.AppendUint64(slot, to.Segment)
	slot = binary.LittleEndian.AppendUint64(slot, uint64(to.Offset))
	slot = binary.LittleEndian.AppendUint32(slot, crc32.Checksum(slot, castagnoli))
	if _, err := c.file.WriteAt(slot, int64(c.serial%2)*sector); err != nil {
		return fmt.Errorf("write the cursor: %w", err)
	}
	return nil
}
