// Package rdb reads and writes the values of Redis's RDB format as DUMP and RESTORE carry them: one value, the version
// of the format, and a checksum. It writes the plain encodings of version 10 (Redis 7.0), which every later server
// reads, and those of version 12 (Redis 7.4) and 80 (Valkey 9) of hashes whose fields have deadlines. It reads all encodings of strings,
// lists, sets, hashes, sorted sets and streams up to version 12 of Redis and 80 of Valkey, those of the days of
// ziplists among them. Modules' types are refused.
//
// The format is described in the sources of Redis: rdb.c, listpack.c, ziplist.c, zipmap.c, intset.c and lzf_d.c.
//
// A payload is not trusted. Lengths are checked against the rest of the payload, counts are not believed at all, and
// the length of decompressed strings is bounded. All functions are pure.
package rdb

import (
	"encoding/binary"
	"errors"
)

// Version is the version of the format that is written, Newest the latest of Redis that is read, and that of hashes with
// deadlines. Valkey counts from 80 on since its version 9, and has another type for such hashes.
const (
	Version        = 10
	Newest         = 12
	FirstOfValkey  = 80
	newestOfValkey = 80
)

var (
	// ErrPayload says that the version is too new or that the checksum does not fit: the payload was not made by DUMP,
	// or did not arrive whole.
	ErrPayload = errors.New("rdb: payload version or checksum are wrong")
	// ErrFormat says that the payload holds no value, or one of a type that is not read.
	ErrFormat = errors.New("rdb: bad data format")
)

// footer is the length of what follows the value: the version, two bytes, and the checksum, eight, both little-endian.
const footer = 10

// Kind is what a value is.
type Kind uint8

// The kinds of values.
const (
	String Kind = iota
	List
	Set
	SortedSet
	Hash
	StreamKind
)

// Value is a decoded value. Its slices may be parts of the payload.
type Value struct {
	Kind     Kind
	Elements [][]byte  // the string alone; elements; members; names and values of fields in turns
	Scores   []float64 // of a sorted set's members

	Stream *Stream // of a stream, which has no Elements

	// Deadlines are those of a hash's fields, in Unix milliseconds; 0 is none. nil: no field has one.
	Deadlines []int64
}

// LastDeadline is the last moment that a field's deadline may be.
const LastDeadline = 1<<46 - 1

// open verifies the footer and returns the value before it, and the version.
func open(payload []byte) (body []byte, version int, err error) {
	if len(payload) < footer {
		return nil, 0, ErrPayload
	}
	body = payload[:len(payload)-footer]
	end := payload[len(body):]
	version = int(binary.LittleEndian.Uint16(end))
	known := version <= Newest || version >= FirstOfValkey && version <= newestOfValkey
	if !known || binary.LittleEndian.Uint64(end[2:]) != checksum(payload[:len(body)+2]) {
		return nil, 0, ErrPayload
	}
	return body, version, nil
}
