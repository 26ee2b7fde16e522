package bitcask

import "runtime"

// The buffer of a large transaction.

// growStep is how much of the buffer is moved at once. The scheduler cannot interrupt a move, nor a loop that does nothing
// else, and the garbage collector stops everybody until it can.
const growStep = 256 << 10

// thriftyBuffer is up to which length a buffer doubles.
const thriftyBuffer = 64 << 20

// growBuffer makes room for n bytes more. A long buffer doubles, or grows by half, and moves in steps.
func (t *Tx) growBuffer(n int) {
	if len(t.buf)+n <= cap(t.buf) || len(t.buf)+n < growStep {
		return
	}
	grown := 2 * cap(t.buf)
	if grown > thriftyBuffer {
		grown = cap(t.buf) + cap(t.buf)/2
	}
	t.buf = appendInSteps(make([]byte, 0, max(grown, len(t.buf)+n)), t.buf)
}

// appendInSteps appends b to dst, which has room for it if it is long.
func appendInSteps(dst, b []byte) []byte {
	for ; len(b) > growStep; b = b[growStep:] {
		dst = append(dst, b[:growStep]...)
		runtime.Gosched()
	}
	return append(dst, b...)
}
