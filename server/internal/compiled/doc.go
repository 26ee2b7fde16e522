// Package compiled keeps what has been compiled of a server's Lua: a [Cache] of the scripts that clients have sent, by their SHA-1, and the
// [Libraries] of functions that are in the store. With each [Script] and [Function] it keeps which locks the runs so far have needed, which
// the server notes and reads.
//
// The cache has Redis 7.4's bounds and lives in memory only. Of libraries the store has the sources (db/library.go); a [Set] is made of them,
// and made again when the store's have changed, whoever has changed them. So there is no moment at which the two could differ for good:
// FUNCTION LOAD only writes to the store.
//
// Cache and Libraries may be used by several goroutines. The mutex of the cache is not held while a script is compiled; that of Libraries is
// held while a set is made. A Set does not change once others see it; a clone belongs to its maker.
package compiled
