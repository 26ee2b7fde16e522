package reserve

// How long segments and the reserve are, so that a disk that the log has filled can be freed by deletes alone. Deletes
// need space for their records before a merge gives any back, and a merge needs space for the live part of a segment
// before it removes the segment. Let D be the bytes of the disk that the log can have, and S the longest segment:
//
//   - A segment is at most D/160 long ([SegmentSize]). Hints may take as much as the log; it may seem to have half of D
//     then, and later segments are shorter.
//   - When less than a quarter of D is left the reserve becomes 6 S: a 27th of D, but no less than 1 MiB. It is so long before the log begins
//     another segment ([Reserve.Prepare]), not after: a log that fills the disk has it whole.
//   - Deletes draw 3 S of it. Then those that follow wait for a merge ([Reserve.AwaitRoom]).
//   - An output draws on it down to 3/2 S. So there is room for 3/2 S: for any segment, whose live part is at most S, and
//     the numbers that become longer in a copy. One merge after another goes through all segments in which anything is
//     dead, and each of them gives back what was; one that finds no space after all leaves nothing behind
//     (bitcask.RewriteOptions.OneOutput). That holds for several segments as well: how much of them is tombstones, which have to
//     be copied too, nobody knows after a restart.
//   - What a delete has written is no longer than what it has made dead, once both have been through a merge: the record
//     of a delete is that of a put without its value. So whatever deletes draw comes back, and more with each value, until
//     the last key is gone; then no segment has anything live, and all of them go without an output.
//   - Deletes that had begun before the output get half of what it leaves, and the rest is for openings and for edits of
//     the manifest.
//
// S is longer than D/160 if a single commit of many records is (a commit has one segment; the reserve becomes 6 S before it), in a store that was on a
// larger disk or of an earlier version, and where other programs have taken the disk since. Then the reserve is 6 S as
// long as that is at most an eighth of the log, and a segment beyond is merged if its live part fits the room that there
// is: merge.NoRoomError says how much is missing. A merge of everything, made in time, splits such segments.
const (
	diskParts    = 160      // a segment takes one of so many parts of the disk
	leastSegment = 64 << 10 // but no less: below 10 MiB a disk is too small for all this
	segments     = 6        // the reserve takes so many segments when the disk is low
	lowParts     = 4        // it is low when one of so many parts is left
	leastLow     = 1 << 20  // and no less: half of it is two deletes of the longest names, and what a merge has is one of them
	logParts     = 8        // the reserve takes at most one of so many parts of the log
	prepareParts = 4        // it is made alongside while so many times its length are left
)

// SegmentSize is the length from which segments are sealed, on a disk of which the log can have so many bytes.
func SegmentSize(wanted, disk int64) int64 {
	return min(wanted, max(disk/diskParts, leastSegment))
}

// Measured notes how much is left of the disk, and returns the length from which segments are sealed there.
func (r *Reserve) Measured(wanted, free int64) (segmentSize int64) {
	disk := free + r.env.LogSize() + r.Bytes()
	r.free.Store(free)
	switch {
	case free < disk/lowParts:
		r.low.Store(true)
	case free > disk/lowParts*2: // not at once, or it would become shorter and longer in turns
		r.low.Store(false)
	}
	return SegmentSize(wanted, disk)
}

// length is how long the reserve of a log should be: a quarter of it up to 1 MiB, a 64th of it beyond 64 MiB, and no
// more than a segment.
func length(segmentSize, want, log int64) int64 {
	switch {
	case want < 0:
		return 0
	case want > 0:
		return max(want, headerSize)
	}
	n := max(log/64, min(log/4, 1<<20))
	return min(n, max(segmentSize, unit)) / unit * unit
}

// lengthWhenLow is length on a disk of which not much is left.
func lengthWhenLow(longest, log int64) int64 {
	return min(max(segments*longest, leastLow), log/logParts) / unit * unit
}
