package rdb

import "encoding/binary"

// Resealed writes the version and the checksum into the last ten bytes of a payload.
func Resealed(payload []byte) []byte {
	binary.LittleEndian.PutUint16(payload[len(payload)-footer:], Version)
	return Rechecked(payload)
}

// Rechecked writes the checksum into the last eight bytes.
func Rechecked(payload []byte) []byte {
	at := len(payload) - 8
	binary.LittleEndian.PutUint64(payload[at:], checksum(payload[:at]))
	return payload
}
