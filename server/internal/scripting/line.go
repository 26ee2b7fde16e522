package scripting

import "sync/atomic"

// Line bounds the memory of clients that wait in line for locks beside scripts. Each takes a goroutine and its keys.
// Waiting for a lock of the store cannot be given up: when a client leaves, its goroutine and keys stay in the line
// until the lock is free, and more clients may come, wait and leave meanwhile. A client that finds no place tries again
// until there is one.
type Line struct {
	most, taken atomic.Int64 // bytes; most is 0: mostInLine
}

// Bytes that may wait in line: of all clients, of one, and of each of its keys besides the text.
const (
	mostInLine = 16 << 20
	heldInLine = 8 << 10
	heldByKey  = 16
)

// PlaceOf is how many bytes the place of a client takes that needs the locks of keys.
func PlaceOf(keys []string) int64 {
	place := int64(heldInLine)
	for _, key := range keys {
		place += heldByKey + int64(len(key))
	}
	return place
}

// Limit sets how many bytes all places may take.
func (l *Line) Limit(n int64) { l.most.Store(n) }

// Take takes a place of n bytes if there is room for it, or if there are no others.
func (l *Line) Take(n int64) bool {
	most := l.most.Load()
	if most == 0 {
		most = mostInLine
	}
	for {
		taken := l.taken.Load()
		if taken > 0 && taken+n > most {
			return false
		}
		if l.taken.CompareAndSwap(taken, taken+n) {
			return true
		}
	}
}

// GiveBack gives back what Take has taken.
func (l *Line) GiveBack(n int64) { l.taken.Add(-n) }
