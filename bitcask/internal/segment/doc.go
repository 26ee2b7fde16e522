// Package segment is one data file of a store, and its hint: open it, map it, read a verified record, walk its frames,
// write it.
//
// A Segment's bytes up to Size never change; any goroutine may read them until Close. Frames walks the commits in order
// and reports where nothing valid is; distinguishing a torn tail from damage starts there (NotTorn), and a single
// flipped bit can be corrected (Corrected). A HintReader reads what loading needs without the values, a HintWriter
// makes it; a Writer makes the output of a merge or a repair with its hint.
//
// Reads through a mapping turn page faults into errors. TryGet reads alongside writers and alongside the unmapping of
// the segment: its caller checks afterwards that the segment is still listed. Nothing here takes a lock.
package segment
