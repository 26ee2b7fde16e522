package main

// workload is something to measure. Its steps run one after the other on the
// same directory, each in a fresh process.
type workload struct {
	name  string // group/what
	about string
	steps int
	run   func(c *child) error
}

// workloads is the list of everything measured, in the order of the tables.
var workloads = []workload{
	{"speed/put/bitcask", "puts of new keys and overwrites beside a bare write(2) of the same bytes", 1, withEngine(bitcaskEngine, puts)},
	{"speed/put/db", "the same through typed handles", 1, withEngine(dbEngine, puts)},
	{"speed/get/bitcask", "gets of keys that are there and of keys that are not", 1, withEngine(bitcaskEngine, gets)},
	{"speed/get/db", "the same through typed handles", 1, withEngine(dbEngine, gets)},
	{"speed/mixed/bitcask", "two threads, half puts half gets", 1, withEngine(bitcaskEngine, mixed)},
	{"speed/mixed/db", "the same through typed handles", 1, withEngine(dbEngine, mixed)},
	{"speed/batch/bitcask", "commits of 1000 puts beside single puts", 1, withEngine(bitcaskEngine, batches)},
	{"speed/batch/db", "the same through typed handles", 1, withEngine(dbEngine, batches)},
	{"speed/sync/bitcask", "64 writers, each put on disk before it returns", 1, withEngine(bitcaskEngine, syncPuts)},
	{"speed/sync/db", "the same through typed handles", 1, withEngine(dbEngine, syncPuts)},
	{"open/clean/bitcask", "open after Close", 1 + openings, withEngine(bitcaskEngine, openClean)},
	{"open/clean/db", "the same with typed handles", 1 + openings, withEngine(dbEngine, openClean)},
	{"open/killed/bitcask", "open after the process was killed", 1 + openings, withEngine(bitcaskEngine, openKilled)},
	{"open/killed/db", "the same with typed handles", 1 + openings, withEngine(dbEngine, openKilled)},
	{"merge/alone/bitcask", "merge of a store of which 75 % is garbage; bytes on disk afterwards", 1, withEngine(bitcaskEngine, mergeAlone)},
	{"merge/busy/bitcask", "gets and puts, idle and while such a merge runs", 1, withEngine(bitcaskEngine, mergeBusy)},
	{"memory/string", "string with a 16-byte key", 4, memory(loadStrings)},
	{"memory/set", "member of 10 bytes of one set", 4, memory(loadSet)},
	{"memory/hash", "field of 10 bytes of one hash", 4, memory(loadHash)},
	{"memory/hash10", "field of 10 bytes of hashes of 10 fields", 4, memory(loadSmallHashes)},
	{"memory/zset", "member of 10 bytes of one sorted set", 4, memory(loadSortedSet)},
	{"memory/list", "element of one list", 4, memory(loadList)},
	{"pause/write", "slowest single write(2)", 1, slowestWrite},
	{"pause/index", "slowest single put while loading, the disk kept out of it", 1, slowestPutNoSync},
	{"pause/default", "slowest single put while loading, default options", 1, slowestPut},
}
