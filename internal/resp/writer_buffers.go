package resp

import (
	"math/bits"
	"sync"
)

const (
	// keepReplies is what a drained writer keeps allocated, in bytes.
	keepReplies = 16 << 10
	// minShared and maxShared bound the buffers that other writers get. Beyond the output at which a session
	// pauses there is one more reply.
	minShared = 64 << 10
	maxShared = 2 << 20
)

// sharedBuffers are the buffers of writers that have been drained, of more than keepReplies bytes: a client that asks
// for long replies again and again would otherwise cost a new buffer each time. Each pool has those of one class of
// lengths. Up to PartSize a class is twice as long as the one before, which a writer's allowance covers; then there are
// 16 classes up to the double, so that a writer has no much longer part than it takes from its budget.
var sharedBuffers [bufferClasses]sync.Pool // of *[]byte

const (
	coarseClasses = 2             // shorter than PartSize
	bufferUnit    = PartSize / 16 // bytes
	bufferClasses = coarseClasses + 3*16 + 1
)

// fineClass returns the class of the longest buffers of at most so many units, which are 16 at least, and their units.
func fineClass(units int) (class, size int) {
	shift := bits.Len(uint(units)) - 5
	sixteenths := units >> shift
	return coarseClasses + 16*(shift-1) + sixteenths, sixteenths << shift
}

// sharedFor returns the class of the buffers for n bytes, and how long they are; -1 if no buffer so long is shared.
func sharedFor(n int) (class, size int) {
	switch {
	case n > maxShared:
		return -1, n
	case n <= PartSize:
		class = bits.Len(uint(max(n, minShared)-1) / minShared)
		return class, minShared << class
	}
	units := (n + bufferUnit - 1) / bufferUnit
	class, size = fineClass(units)
	if size < units {
		class++
		size += 1 << (bits.Len(uint(units)) - 5)
	}
	return class, size * bufferUnit
}

// giveBuffer keeps a buffer for other writers.
func giveBuffer(b []byte) {
	class := bits.Len(uint(cap(b)/minShared)) - 1
	if cap(b) >= PartSize {
		class, _ = fineClass(cap(b) / bufferUnit)
	}
	if class >= 0 && class < bufferClasses {
		b = b[:0]
		sharedBuffers[class].Put(&b)
	}
}

// takeBuffer returns an empty buffer for n bytes.
func takeBuffer(n int) []byte {
	class, size := sharedFor(n)
	if class >= 0 {
		if shared, _ := sharedBuffers[class].Get().(*[]byte); shared != nil {
			return *shared
		}
	}
	return make([]byte, 0, size)
}
