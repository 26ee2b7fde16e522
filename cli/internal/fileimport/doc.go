// Package fileimport stores what files of other programs hold: an RDB file or an AOF of a Redis, commands in RESP,
// lines of JSON and commands as in the shell, and tables. [Open] recognises the format of a [Source]; [Source.Import]
// stores all of it, and [Table.Import] the rows of a table. A Source is read once, by one goroutine.
//
// However an import ends, what comes before is stored and the error names the line or the byte. So the file
// can be corrected and imported again from there, or from the start: a key replaces what the store had under its name.
package fileimport
