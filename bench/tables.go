package main

import (
	"fmt"
	"slices"
)

// tables are the printed tables, with the targets of the design.
var tables = slices.Concat(ownTables, peerTables())

// ownTables are of Stave alone.
var ownTables = []table{
	{"speed, one operation", []string{"time", "bare write(2), same bytes", "ratio"}, []row{
		putRow("put, new key", "bitcask", "new", "<= 1.0 x", 1), putRow("put, new key", "db", "new", "<= 1.0 x", 1),
		putRow("put, overwrite", "bitcask", "over", "<= 1.7 x", 1.7), putRow("put, overwrite", "db", "over", "<= 1.7 x", 1.7),
	}},
	{"speed, one operation", []string{"bitcask", "db"}, []row{
		both("get hit, caller's copy", "get", "hit", "", nil),
		both("get hit, into a buffer", "get", "hit-into", "<= 0.45 us", atMost(450)),
		both("get miss", "get", "miss", "", nil),
		both("pread(2) of the same bytes, at random", "get", "pread", "", nil),
		both("half puts half gets, 2 threads, per thread", "mixed", "op", "", nil),
		both("put, one of 1000 in a commit", "batch", "batched", "", nil),
		{label: "put, alone, same run", cells: []cell{fig(micros, "speed/batch/bitcask/single"), fig(micros, "speed/batch/db/single")}},
		{label: "ratio", cells: []cell{fig(times, "speed/batch/bitcask/ratio"), fig(times, "speed/batch/db/ratio")}, target: ">= 5 x", met: atLeast(5), each: true},
		both("put on disk, 64 writers", "sync", "op", "", nil),
		both("write(2) and fsync, alone", "sync", "fsync", "", nil),
	}},
	{"open", []string{"slowest of 1000 gets, right after", "p99 of them", "CPU time", "time"}, []row{
		openRow("after Close", "clean", "bitcask", "<= 3 ms", 3e6), openRow("after Close", "clean", "db", "<= 3 ms", 3e6),
		openRow("after a kill", "killed", "bitcask", "<= 400 ms", 400e6), openRow("after a kill", "killed", "db", "<= 400 ms", 400e6),
	}},
	{"merge, 75 % garbage", []string{"before", "after", "CPU time", "time"}, []row{
		{
			label: "alone", target: "<= 1200 ms", met: atMost(1200e6),
			cells: []cell{
				fig(mega, "merge/alone/bitcask/before"), fig(mega, "merge/alone/bitcask/after"),
				fig(millis, "merge/alone/bitcask/cpu"), fig(millis, "merge/alone/bitcask/took"),
			},
		},
	}},
	{"bytes on disk after a merge, for 144 live", []string{"data", "hints, INDEX and manifest", "together"}, []row{
		{label: "each", cells: []cell{
			fig(octets, "merge/alone/bitcask/after-each"), fig(octets, "merge/alone/bitcask/after-other-each"), fig(octets, "merge/alone/bitcask/after-total-each"),
		}, target: "<= 184 B", met: atMost(184)},
	}},
	{"one client, a merge at full speed", []string{"idle", "beside a busy thread", "beside a merge", "merge / idle"}, latencyRows("busy")},
	{"one client, a merge in the background", []string{"idle", "beside a busy thread", "beside a merge", "merge / idle"}, latencyRows("paced")},
	{"memory, each entry", []string{"heap", "RSS, after opening", "RSS, after loading"}, []row{
		memoryRow("string, 16-byte key", "string", 24), memoryRow("set member, 10 bytes", "set", 28),
		memoryRow("hash field, 10 bytes, one big hash", "hash", 28), memoryRow("hash field in 10-field hashes", "hash10", 40),
		memoryRow("zset member, 10 bytes", "zset", 64), memoryRow("list element", "list", 14),
	}},
	{"one garbage collection, CPU time", []string{"empty", "loaded"}, []row{
		gcRow("strings", "string"), gcRow("one set", "set"), gcRow("one hash", "hash"),
		gcRow("hashes of 10 fields", "hash10"), gcRow("one sorted set", "zset"), gcRow("one list", "list"),
	}},
	{"single calls while loading", []string{"p50", "p99", "p99.9", "slowest"}, []row{
		pauseRow("nothing: the machine's own pauses", "nothing", ""),
		pauseRow("insertion into the index alone", "keydir", "index growth < 1 ms"),
		pauseRow("write(2) of the same bytes", "write", ""),
		pauseRow("put, no syncs, one segment", "index", ""),
		pauseRow("put, default options", "default", ""),
	}},
}

func putRow(label, engine, part, target string, limit float64) row {
	at := "speed/put/" + engine + "/" + part
	return row{
		label:  label + ", " + engine,
		cells:  []cell{fig(micros, at), fig(micros, at+"-write"), fig(times, at+"-ratio")},
		target: target, met: atMost(limit),
	}
}

func openRow(label, how, engine, target string, limit float64) row {
	at := "open/" + how + "/" + engine + "/"
	return row{label: label + ", " + engine, cells: []cell{fig(millis, at+"first"), fig(millis, at+"first-p99"), fig(millis, at+"cpu"), fig(millis, at+"open")}, target: target, met: atMost(limit)}
}

func both(label, group, part, target string, met func(float64) bool) row {
	r := row{label: label, target: target, met: met, each: true}
	for _, engine := range []string{"bitcask", "db"} {
		r.cells = append(r.cells, fig(micros, fmt.Sprintf("speed/%s/%s/%s", group, engine, part)))
	}
	return r
}

func latencyRows(how string) []row {
	merge := "merge/" + how + "/bitcask/"
	var rows []row
	for _, op := range []string{"get", "put"} {
		for _, q := range quantiles {
			at := func(part string) string { return merge + part + "-" + op + "-" + q.name }
			idle, merging := at("idle"), at("merging")
			r := row{label: op + " " + q.name, cells: []cell{
				fig(micros, idle), fig(micros, at("computing")), fig(micros, merging),
				calc(times, func(v []float64) float64 { return v[0] / max(v[1], 1) }, merging, idle),
			}}
			if q.name == "p99" {
				r.target, r.met = "<= 2 x", atMost(2)
			}
			rows = append(rows, r)
		}
	}
	return append(rows, row{label: "time of the merge meanwhile", cells: []cell{
		{}, {}, fig(millis, merge+"took"), {},
	}})
}

func memoryRow(label, name string, target float64) row {
	at := "memory/" + name + "/"
	each := func(full, base string) cell { return each(at+full, at+base, at+"entries") }
	return row{
		label:  label,
		cells:  []cell{each("full-heap", "base-heap"), each("full-opened-rss", "base-opened-rss"), each("full-rss", "base-rss")},
		target: fmt.Sprintf("<= %.0f B", target), met: atMost(target),
	}
}

func gcRow(label, name string) row {
	return row{label: label, cells: []cell{fig(millis, "memory/"+name+"/base-gc"), fig(millis, "memory/"+name+"/full-gc")}}
}

func pauseRow(label, name, target string) row {
	r := row{label: label, target: target}
	for _, q := range quantiles {
		r.cells = append(r.cells, fig(micros, "pause/"+name+"/each-"+q.name))
	}
	return r
}
