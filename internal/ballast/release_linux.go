package ballast

import "golang.org/x/sys/unix"

// release gives the pages of b back to the system: the allocator clears memory that was in use before, which touches it.
// They read as zeros, should anyone look. Without it the ballast takes memory, and does its work as well.
func release(b []byte) { _ = unix.Madvise(b, unix.MADV_DONTNEED) }
