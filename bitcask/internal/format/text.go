package format

import "unsafe"

// Text views bytes as a string, without a copy; for calls that keep nothing.
func Text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
