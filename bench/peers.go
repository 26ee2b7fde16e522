package main

// peerTables compare Stave's two layers with the peers, in figures of one run.
func peerTables() []table {
	columns := []string{"bitcask", "db"}
	for _, e := range engines {
		if e.isPeer() {
			columns = append(columns, e.name)
		}
	}
	return []table{
		{"Stave and peers", append(columns, "best peer / bitcask", "best peer / db"), []row{
			peerRow("put, 1 thread", "speed/put", "new", micros, "", nil),
			peerRow("put, 1 thread, mean with stalls", "speed/put", "new-mean", micros, "", nil),
			peerRow("overwrite, 1 thread", "speed/put", "over", micros, "", nil),
			peerRow("get hit", "speed/get", "hit-into", micros, ">= 1.3 x", atLeast(1.3)),
			peerRow("get miss", "speed/get", "miss", micros, ">= 2 x", atLeast(2)),
			peerRow("half puts half gets, 2 threads, per thread", "speed/mixed", "op", micros, ">= 3 x", atLeast(3)),
			peerRow("put on disk, 64 writers", "speed/sync", "op", micros, ">= 1 x", atLeast(1)),
			peerRow("put, one of 1000 in a commit", "speed/batch", "batched", micros, "", nil),
			peerRow("merge, 75 % garbage", "merge/alone", "took", millis, "", nil),
			peerRow("the same, CPU time", "merge/alone", "cpu", millis, "", nil),
			peerRow("disk before it", "merge/alone", "before-total", mega, "", nil),
			peerRow("disk after it", "merge/alone", "after-total", mega, "", nil),
			peerRow("disk after it, for 144 live bytes", "merge/alone", "after-total-each", octets, "", nil),
			peerRow("open after Close", "open/clean", "open", millis, "", nil),
			peerRow("open after a kill", "open/killed", "open", millis, "", nil),
			peerRow("acknowledged puts lost by the kill", "open/killed", "lost", count, "", nil),
			peerMemoryRow("RSS of a key, after loading", "full-rss", "base-rss"),
			peerMemoryRow("RSS of a key, after opening", "full-opened-rss", "base-rss"),
		}},
		{"how each is set", []string{"version", "a put is in", "a synced put waits for", "in memory", "merge is"}, settingRows()},
	}
}

// peerRow has a figure of every engine, and how many times the best peer's are
// Stave's. Both must meet the target.
func peerRow(label, group, part string, format func(float64) string, target string, met func(float64) bool) row {
	r := row{label: label, target: target, met: met, each: true}
	var own, peers []string
	for _, e := range engines {
		name := group + "/" + e.name + "/" + part
		c := fig(format, name)
		c.unjudged = true
		r.cells = append(r.cells, c)
		if e.isPeer() {
			peers = append(peers, name)
		} else {
			own = append(own, name)
		}
	}
	for _, name := range own {
		r.cells = append(r.cells, cell{names: []string{name}, format: times, of: func(f figures) (float64, bool) { return overBest(f, name, peers) }})
	}
	return r
}

// peerMemoryRow has no ratio: what an engine with a cache holds does not grow
// with its keys, and one whose index lies in files holds nothing.
func peerMemoryRow(label, full, base string) row {
	r := row{label: label}
	for _, e := range engines {
		at := "memory/kv/" + e.name + "/"
		r.cells = append(r.cells, each(at+full, at+base, at+"entries"))
	}
	return r
}

// overBest divides the smallest figure of the peers by one of Stave's.
func overBest(f figures, own string, peers []string) (float64, bool) {
	mine, ok := f.median(own)
	if !ok || mine <= 0 {
		return 0, false
	}
	best, found := 0.0, false
	for _, p := range peers {
		if v, ok := f.median(p); ok && (!found || v < best) {
			best, found = v, true
		}
	}
	return best / mine, found
}

// settingRows are text; they stand below the figures of the peers.
func settingRows() []row {
	var rows []row
	for _, e := range engines {
		r := row{label: e.name}
		for _, text := range []string{e.fair.version, e.fair.put, e.fair.sync, e.fair.memory, e.fair.merge} {
			measured := "speed/put/" + e.name + "/new"
			r.cells = append(r.cells, cell{format: func(float64) string { return text }, of: func(f figures) (float64, bool) { return f.median(measured) }})
		}
		rows = append(rows, r)
	}
	return rows
}
