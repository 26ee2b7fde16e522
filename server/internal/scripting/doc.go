// Package scripting is what the sessions of a server share about Lua: a [Cache] of the scripts that clients have sent, by
// their SHA-1, the [Libraries] of functions that are in the store, and the [Runs] that last. [Commands] are SCRIPT and
// FUNCTION, which work on these. A session executes EVAL and FCALL itself. What its runs
// have shown of a [Script] or a [Function] is [Known].
//
// The cache has Redis 7.4's bounds and lives in memory only. Of libraries the store has the sources (db/library.go); a
// [Set] is made of them, and made again when the store's have changed, whoever has changed them. So there is no moment
// at which the two could differ for good: FUNCTION LOAD only writes to the store.
//
// All may be used by several goroutines. The mutex of the cache is not held while a script is compiled;
// that of Libraries is held while a set is made. A Set does not change once others see it; a clone belongs to its maker.
package scripting
