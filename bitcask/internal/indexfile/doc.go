// Package indexfile reads and writes the file INDEX, the keydir at some moment: header, contents, sections, and what
// its locations lead to.
//
// Contents is everything in an INDEX besides its sections; Fits reports whether a set of segments still agrees with it.
// Decoding takes memory at most in proportion to the file. When one is written, and what is loaded when, the store
// decides (bitcask/index_write.go, bitcask/index_load.go, bitcask/index_lazy.go).
package indexfile
