package format

import "encoding/binary"

// Mark names a state of the log: all that it holds up to a sequence number.
// INDEX and TTL carry the mark of the state that they describe, so that they are
// believed only where the log has been in that state. Neither the number nor the
// place alone would do: copies and restored directories give the same numbers to
// other commits, and commits of the same lengths end at the same places.
//
//	+------------+-------------+-----------+-----------+-------------+
//	| opening u64| sequence u64| segment   | length u64| end crc u32 |
//	|            |             | id u32    |           |             |
//	+------------+-------------+-----------+-----------+-------------+
//	0            8             16          20          28            32
type Mark struct {
	Opening  uint64 // of the store for writing, which gave the sequence
	Sequence uint64 // of the newest record
	Segment  uint32 // that it ends in
	Length   uint64 // of that segment, up to there
	Sum      uint32 // of the last bytes of that length, up to 64
}

func (m Mark) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, m.Opening)
	b = binary.LittleEndian.AppendUint64(b, m.Sequence)
	b = binary.LittleEndian.AppendUint32(b, m.Segment)
	b = binary.LittleEndian.AppendUint64(b, m.Length)
	return binary.LittleEndian.AppendUint32(b, m.Sum)
}

func ReadMark(f *Fields) Mark {
	return Mark{Opening: f.U64(), Sequence: f.U64(), Segment: f.U32(), Length: f.U64(), Sum: f.U32()}
}
