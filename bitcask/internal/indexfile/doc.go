// Package indexfile is the bytes of the file INDEX, the keydir at some moment: header, contents, and what its locations lead to.
//
// Contents is everything in an INDEX besides its sections; Fits reports whether a set of segments still agrees with it. Decoding takes
// memory at most in proportion to the file. Loading and writing are the store's (bitcask/index_load.go, bitcask/index_write.go).
package indexfile
