package commitlog

import "github.com/stavedb/stave/bitcask/internal/format"

// Frame is a commit without what its place in the log decides: sequence numbers and checksums.
type Frame struct {
	Bytes   []byte   // room for the header, then the records; out-of-line values are left out
	Records []int    // where each record begins in Bytes
	Values  [][]byte // for each record, its value if that is out of line, else nil; empty if none is
	Size    int64    // in the log, all values included
	Effects any      // for who has asked for them with OnWritten; nil: none
}

// finish fills in header and checksums for a place in the log, and splits the frame into pieces if values are out of
// line.
func (f *Frame) finish(h format.FrameHeader, s format.ChecksumSeed, at uint32) (whole []byte, pieces [][]byte) {
	format.FinishFrame(f.Bytes, h, s, at, f.Records, f.Values)
	if len(f.Values) == 0 {
		return f.Bytes, nil
	}
	from := 0
	for i, value := range f.Values {
		if value == nil {
			continue
		}
		end := len(f.Bytes)
		if i+1 < len(f.Records) {
			end = f.Records[i+1]
		}
		pieces = append(pieces, f.Bytes[from:end], value)
		from = end
	}
	if from < len(f.Bytes) {
		pieces = append(pieces, f.Bytes[from:])
	}
	return nil, pieces
}
