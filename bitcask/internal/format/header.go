package format

import (
	"encoding/binary"
	"slices"

	"github.com/klauspost/crc32"
)

// OtherVersion reports whether the head of an INDEX or of a hint is whole and of another version than these.
func OtherVersion(head []byte, magic string, versions ...uint16) bool {
	end := len(head) - 4
	return string(head[:len(magic)]) == magic && !slices.Contains(versions, binary.LittleEndian.Uint16(head[len(magic):])) &&
		binary.LittleEndian.Uint32(head[end:]) == crc32.ChecksumIEEE(head[:end])
}

// OtherFlags reports whether the head of a hint or of an INDEX is whole and has flags other than the known ones.
func OtherFlags(head []byte, magic string, known uint16) bool {
	end := len(head) - 4
	return string(head[:len(magic)]) == magic && binary.LittleEndian.Uint16(head[len(magic)+2:])&^known != 0 &&
		binary.LittleEndian.Uint32(head[end:]) == crc32.ChecksumIEEE(head[:end])
}
