package system

import (
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/klauspost/crc32"
)

// LibraryPrefix is what the names of the records of libraries begin with, and LibraryVersion what their values do, in a
// header of LibraryHeader bytes: bitcask/library.go.
const (
	LibraryPrefix  = "library:"
	LibraryVersion = 1
	LibraryHeader  = 7
)

// LibraryRecord is the name of the system record with a part of a library.
func LibraryRecord(name string, part int) string {
	return LibraryPrefix + name + ":" + strconv.Itoa(part)
}

// LibraryOf is the inverse of LibraryRecord.
func LibraryOf(record string) (name string, part int, ok bool) {
	rest, ok := strings.CutPrefix(record, LibraryPrefix)
	colon := strings.LastIndexByte(rest, ':')
	if !ok || colon < 0 {
		return "", 0, false
	}
	part, err := strconv.Atoi(rest[colon+1:])
	return rest[:colon], part, err == nil
}

// JoinLibrary is the text of a library, if all of its parts are there.
func JoinLibrary(records Names, name string) (text string, whole bool) {
	var joined []byte
	first := records[LibraryRecord(name, 0)].Value
	if len(first) < LibraryHeader {
		return "", false
	}
	parts := int(binary.LittleEndian.Uint16(first[1:]))
	for i := range parts {
		value := records[LibraryRecord(name, i)].Value
		if len(value) < LibraryHeader || string(value[:LibraryHeader]) != string(first[:LibraryHeader]) {
			return "", false
		}
		joined = append(joined, value[LibraryHeader:]...)
	}
	if crc32.ChecksumIEEE(joined) != binary.LittleEndian.Uint32(first[3:]) {
		return "", false
	}
	return string(joined), true
}
