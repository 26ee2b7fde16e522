package vfs

import "errors"

// Copier is what a [File] is as well if bytes can be put into it without a system call for each write. Ask with a type
// assertion; Window may still say that this file cannot. The methods of one file are called by one goroutine at a time;
// the other operations of the file may run alongside. Close ends the window.
type Copier interface {
	// Window makes the n bytes from off on those that CopyAt may fill, in place of any before. They are part of the
	// file already: the caller has written zeros there. Their pages are made ready in the call, as by Populate.
	// [errors.ErrUnsupported] is the cause where a copy could need space that a full disk does not have, or could wait
	// outside of a system call.
	Window(off int64, n int) error
	// Populate makes the pages of the window ready once more, from off on: after a sync of the file the first copy to
	// each would wait, in the middle of the program, for what a write waits for in the kernel.
	Populate(off int64) error
	// CopyAt is WriteAt of bytes within the window, in ascending order: a process that is killed in the middle leaves
	// the first bytes of p and nothing of the rest. What lies beyond the end of the file, because somebody has
	// truncated it, is lost without an error if it is in the last page. The error of a page that cannot be had is
	// [syscall.EIO].
	CopyAt(p []byte, off int64) error
	// EndWindow ends the window: no copies after that.
	EndWindow() error
}

// errNoWindow is about a mistake of the caller.
var errNoWindow = errors.New("copy outside of the window")

// copyForward copies src to dst in ascending order, sixteen bytes at a time: the built-in copy takes any order.
func copyForward(dst, src []byte) {
	dst = dst[:len(src)]
	for len(src) >= 16 {
		*(*[16]byte)(dst) = *(*[16]byte)(src)
		dst, src = dst[16:], src[16:]
	}
	for len(src) > 0 {
		dst[0] = src[0]
		dst, src = dst[1:], src[1:]
	}
}
