package resp

import "testing"

// TestBufferClasses: a buffer that is given is as long as those of its pool have to be, and no much longer than what
// was asked for.
func TestBufferClasses(t *testing.T) {
	for n := 1; n <= maxShared+PartSize; n += 4093 {
		class, size := sharedFor(n)
		most := 2 * max(n, minShared)
		if n > PartSize {
			most = n + n/16 + bufferUnit
		}
		if size < n || size > most || (class < 0) != (n > maxShared) || class >= bufferClasses {
			t.Fatalf("%d bytes: class %d of %d bytes", n, class, size)
		}
		if class >= 0 {
			giveBuffer(make([]byte, 0, size+n%100))
			b, _ := sharedBuffers[class].Get().(*[]byte)
			if b != nil && cap(*b) < size {
				t.Fatalf("the pool of %d bytes has a buffer of %d", size, cap(*b))
			}
		}
		if n >= minShared { // whatever length it has
			giveBuffer(make([]byte, 0, n))
			if b := takeBuffer(n); cap(b) < n {
				t.Fatalf("a buffer of %d bytes for %d", cap(b), n)
			}
		}
	}
}
