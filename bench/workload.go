package main

import (
	"path"
	"slices"
	"strings"
)

// workload is something to measure. Its steps run one after the other on the
// same directory, each in a fresh process.
type workload struct {
	name  string // group/what
	about string
	steps int
	run   func(c *child) error
}

// matches says whether -only means the workload with this name, group or
// pattern.
func (w *workload) matches(want string) (bool, error) {
	if w.name == want || strings.HasPrefix(w.name, strings.TrimSuffix(want, "/")+"/") {
		return true, nil
	}
	return path.Match(want, w.name)
}

// workloads is the list of everything measured, in the order of the tables.
var workloads = slices.Concat(
	eachEngine("speed/put", "puts of new keys and overwrites beside a bare write(2) of the same bytes", 1, puts),
	eachEngine("speed/get", "gets of keys that are there and of keys that are not", 1, gets),
	eachEngine("speed/mixed", "two threads, half puts half gets", 1, mixed),
	eachEngine("speed/batch", "commits of 1000 puts beside single puts", 1, batches),
	eachEngine("speed/sync", "64 writers, each put on disk before it returns", 1, syncPuts),
	eachEngine("open/clean", "open after Close", 1+openings, openClean),
	eachEngine("open/killed", "open after the process was killed; puts that the kill took", 1+openings, openKilled),
	eachEngine("merge/alone", "merge of a store of which 75 % is garbage; bytes on disk afterwards", 1, mergeAlone),
	eachEngine("memory/kv", "key of 16 bytes with a value of 128", 3, memoryOfKeys),
	[]workload{
		{"merge/busy/bitcask", "gets and puts, idle and while such a merge runs", 1, withEngine(engineNamed("bitcask"), mergeBusy(kv.merge))},
		{"merge/paced/bitcask", "the same while one runs at the rate that it has in the background", 1, withEngine(engineNamed("bitcask"), mergeBusy(mergePaced))},
		{"memory/string", "string with a 16-byte key", 4, memory(loadStrings)},
		{"memory/set", "member of 10 bytes of one set", 4, memory(loadSet)},
		{"memory/hash", "field of 10 bytes of one hash", 4, memory(loadHash)},
		{"memory/hash10", "field of 10 bytes of hashes of 10 fields", 4, memory(loadSmallHashes)},
		{"memory/zset", "member of 10 bytes of one sorted set", 4, memory(loadSortedSet)},
		{"memory/list", "element of one list", 4, memory(loadList)},
		{"pause/nothing", "slowest round of a loop that does nothing", 1, pauseOfNothing},
		{"pause/keydir", "slowest single insertion into the index alone", 1, slowestInsert},
		{"pause/write", "slowest single write(2)", 1, slowestWrite},
		{"pause/index", "slowest single put while loading, the disk kept out of it", 1, slowestPutNoSync},
		{"pause/default", "slowest single put while loading, default options", 1, slowestPut},
	},
)

// eachEngine is one workload for every engine: name/engine. Peers repeat less: theirs take seconds.
func eachEngine(name, about string, steps int, run func(c *child) error) []workload {
	var list []workload
	for _, e := range engines {
		steps := steps
		if e.isPeer() {
			steps = min(steps, 1+peerOpenings)
		}
		list = append(list, workload{name + "/" + e.name, about, steps, withEngine(e, run)})
	}
	return list
}
