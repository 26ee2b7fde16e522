package rdb

import "hash/crc64"

// table is of the polynomial of Jones, as Redis uses it, in the bit order of hash/crc64.
var table = crc64.MakeTable(0x95ac9329ac4bc9b5)

// checksum is the CRC without the inversions at both ends that hash/crc64 has.
func checksum(b []byte) uint64 { return ^crc64.Update(^uint64(0), table, b) }
