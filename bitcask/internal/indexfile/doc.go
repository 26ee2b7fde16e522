// Package indexfile is the bytes of the file INDEX, the keydir as of some moment: header, contents, and what its locations lead to.
//
// Contents is what an INDEX says besides its sections; Fits tells whether a set of segments is still what it has seen. Decoding takes no more
// memory than in proportion to the file. Loading and writing are the store's (bitcask/index_load.go, bitcask/index_write.go).
package indexfile
