package commitlog

import (
	"slices"
	"time"

	"github.com/stavedb/stave/bitcask/internal/format"
)

// To checksum and to write a large frame takes tens of milliseconds or more, and the frames after it wait for it, since
// the log has no holes. An event loop must not, so MayWait warns of it.

const (
	// LargeFrame is the length of a frame, in bytes, from which the wait for it is long: some milliseconds.
	LargeFrame = 4 << 20
	// largeNotice is how long before a large frame MayWait warns of it, so that commits for which it has been asked before
	// are made by then.
	largeNotice = time.Millisecond
)

// announceLarge has MayWait warn of a large frame until the result is called. It returns after largeNotice.
func (l *Log) announceLarge() (written func()) {
	l.large.Add(1)
	time.Sleep(largeNotice)
	return func() { l.large.Add(-1) }
}

// lateFrame is a large frame in a group. It gets its checksums when the group is written, without the lock of the log.
type lateFrame struct {
	frame  *Frame
	header format.FrameHeader
	seed   format.ChecksumSeed
	at     uint32
	before int // how many pieces of the group go before it
}

// addLate adds a frame that is not finished.
func (g *writeGroup) addLate(f lateFrame) {
	if len(g.buf) > 0 {
		g.pieces, g.buf = append(g.pieces, g.buf), nil
	}
	f.before = len(g.pieces)
	g.late = append(g.late, f)
}

// finishLate finishes what addLate has added.
func (g *writeGroup) finishLate() {
	for _, f := range slices.Backward(g.late) { // so that before of the others stays right
		whole, pieces := f.frame.finish(f.header, f.seed, f.at)
		if pieces == nil {
			pieces = [][]byte{whole}
		}
		g.pieces = slices.Insert(g.pieces, f.before, pieces...)
	}
	g.late = nil
}
