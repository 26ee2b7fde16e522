package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"github.com/stavedb/stave/keydir"
)

func rss() (cur, peak int64) {
	b, _ := os.ReadFile("/proc/self/status")
	for _, l := range strings.Split(string(b), "\n") {
		f := strings.Fields(l)
		if len(f) > 1 && f[0] == "VmRSS:" {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			cur = n << 10
		}
		if len(f) > 1 && f[0] == "VmHWM:" {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			peak = n << 10
		}
	}
	return
}

func cpu() time.Duration {
	var ts unix.Timespec
	unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts)
	return time.Duration(ts.Nano())
}

func main() {
	runtime.LockOSThread()
	what := os.Args[1]
	n, _ := strconv.Atoi(os.Args[2])
	seed := keydir.Seed{1, 2}
	d := keydir.NewDirectory(seed)
	start := time.Now()
	var worst time.Duration
	switch what {
	case "string":
		for i := range n {
			k := fmt.Sprintf("%016d", i)
			t := cpu()
			d.Insert(seed.Hash(k), keydir.Slot{keydir.String, keydir.Loc(i + 1)})
			worst = max(worst, cpu()-t)
		}
	case "set", "hash", "zset", "zseteq", "zsetseq":
		typ := map[string]keydir.Type{"set": keydir.Set, "hash": keydir.Hash, "zset": keydir.ZSet, "zseteq": keydir.ZSet, "zsetseq": keydir.ZSet}[what]
		f := d.NewFamily(1, typ, "k")
		for i := range n {
			k := fmt.Sprintf("%010d", i)
			s := uint64(i) * 0x9e3779b97f4a7c15
			if what == "zseteq" {
				s = 1
			}
			if what == "zsetseq" {
				s = uint64(i)
			}
			t := cpu()
			if typ == keydir.ZSet {
				f.PutScored(k, s, keydir.Loc(i+1))
			} else {
				f.Put(k, keydir.Loc(i+1))
			}
			worst = max(worst, cpu()-t)
		}
	case "hash10", "hash10rr":
		for i := range n {
			a, b := i/10, i%10
			if what == "hash10rr" {
				a, b = i%(n/10), i/(n/10)
			}
			key := fmt.Sprintf("key:%012d", a)
			h := seed.Hash(key)
			t := cpu()
			f, ok := d.FindFamily(h, key)
			if !ok {
				f = d.NewFamily(h, keydir.Hash, key)
			}
			f.Put(fmt.Sprintf("field:%04d", b), keydir.Loc(i+1))
			worst = max(worst, cpu()-t)
		}
	case "list":
		f := d.NewFamily(1, keydir.List, "k")
		for i := range n {
			t := cpu()
			f.PutAt(int64(i), keydir.Loc(i+1))
			worst = max(worst, cpu()-t)
		}
	case "list10":
		for i := range n {
			key := fmt.Sprintf("key:%012d", i/10)
			h := seed.Hash(key)
			f, ok := d.FindFamily(h, key)
			if !ok {
				f = d.NewFamily(h, keydir.List, key)
			}
			f.PutAt(int64(i%10), keydir.Loc(i+1))
		}
	}
	el := time.Since(start)
	_, peak := rss()
	var ms runtime.MemStats
	runtime.ReadMemStats(&ms)
	ngc, alloc := ms.NumGC, ms.TotalAlloc
	runtime.GC()
	g := time.Now()
	runtime.GC()
	gt := time.Since(g)
	debug.FreeOSMemory()
	cur, _ := rss()
	runtime.ReadMemStats(&ms)
	f := float64(n)
	fmt.Printf("%-8s %9d  rss %.1f  peak %.1f  heapinuse %.2f  heapalloc %.2f  bytes() %.2f  total-alloc %.1f gcs %d  gc %v  load %.0f ns/op worst %v\n", what, n,
		float64(cur)/f, float64(peak)/f, float64(ms.HeapInuse)/f, float64(ms.HeapAlloc)/f, float64(d.Bytes())/f, float64(alloc)/f, ngc, gt, float64(el.Nanoseconds())/f, worst)
	runtime.KeepAlive(d)
}
