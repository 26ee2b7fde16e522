package main

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/histogram"
)

// The store to be merged has its keys written four times over in random order:
// 75 % of every segment is garbage.
const passes = 4

// mergeKeys makes it 570 MB long with the default of a million entries.
func (c *child) mergeKeys() int { return max(c.n*9/10, 1000) }

func (c *child) withGarbage(sync bitcask.SyncMode, fn func(s kv) error) error {
	return c.with(openOptions{sync: sync, segmentSize: 64 << 20}, func(s kv) error {
		for pass := range passes {
			if err := load(s, shuffledKeys(uint64(pass), 0, c.mergeKeys())); err != nil {
				return err
			}
		}
		runtime.GC()
		return fn(s)
	})
}

func mergeAlone(c *child) error {
	err := c.withGarbage(bitcask.SyncNone, func(s kv) error {
		if err := c.recordSize("before"); err != nil {
			return err
		}
		return c.profiled("merge", func() error {
			begin, cpu := time.Now(), cpuTime()
			err := s.merge()
			c.record("took", float64(time.Since(begin)))
			c.record("cpu", float64(cpuTime()-cpu))
			return err
		})
	})
	return errors.Join(err, c.recordSize("after"))
}

// recordSize records the bytes in Stave's data files and in its others, and what
// all files occupy, which for files made longer in advance is less than their
// length.
func (c *child) recordSize(part string) error {
	var data, other, occupied int64
	err := filepath.WalkDir(c.path("store"), func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if strings.HasSuffix(name, ".data") {
			data += info.Size()
		} else {
			other += info.Size()
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			occupied += min(st.Blocks*512, info.Size())
		}
		return nil
	})
	c.record(part, float64(data))
	c.record(part+"-each", float64(data)/float64(c.mergeKeys()))
	c.record(part+"-other-each", float64(other)/float64(c.mergeKeys()))
	c.record(part+"-total", float64(occupied))
	c.record(part+"-total-each", float64(occupied)/float64(c.mergeKeys()))
	return err
}

// mergeBusy times single gets and puts, alternating, by one client: first while nothing else runs,
// then alongside a thread that only computes (its effect is the machine's, not the merge's), then
// while a merge runs.
func mergeBusy(merge func(s kv) error) func(c *child) error {
	return func(c *child) error {
		return c.withGarbage(bitcask.SyncInterval, func(s kv) error {
			if err := c.profiled("idle", func() error { return c.client(s, "idle", after(2*time.Second)) }); err != nil {
				return err
			}
			if err := c.besideComputing(s); err != nil {
				return err
			}
			return c.profiled("merging", func() error { return c.besideMerge(s, merge) })
		})
	}
}

func (c *child) besideMerge(s kv, merge func(s kv) error) error {
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		begin := time.Now()
		err = merge(s)
		c.record("took", float64(time.Since(begin)))
	}()
	cerr := c.client(s, "merging", done)
	<-done
	return errors.Join(err, cerr)
}

func (c *child) besideComputing(s kv) error {
	var stop atomic.Bool
	var wait sync.WaitGroup
	wait.Go(func() {
		for !stop.Load() {
		}
	})
	err := c.client(s, "computing", after(2*time.Second))
	stop.Store(true)
	wait.Wait()
	return err
}

func after(d time.Duration) <-chan struct{} {
	done := make(chan struct{})
	time.AfterFunc(d, func() { close(done) })
	return done
}

// client gets and puts random keys until done and records the quantiles.
func (c *child) client(s kv, part string, done <-chan struct{}) error {
	var gets, puts histogram.Histogram
	vals := newValues()
	r := rand.New(rand.NewPCG(7, 7))
	keys := shuffledKeys(9, 0, c.mergeKeys())
	var dst []byte
	for i := 0; ; i++ {
		select {
		case <-done:
			c.recordQuantiles(part+"-get", &gets)
			c.recordQuantiles(part+"-put", &puts)
			return nil
		default:
		}
		key := keys[r.IntN(len(keys))]
		begin := time.Now()
		out, ok, err := s.get(dst[:0], key)
		gets.Add(time.Since(begin))
		dst = out
		if err != nil || !ok {
			return errors.Join(errLost, err)
		}
		key = keys[r.IntN(len(keys))]
		begin = time.Now()
		err = s.put(key, vals.at(i))
		puts.Add(time.Since(begin))
		if err != nil {
			return err
		}
	}
}

var quantiles = []struct {
	name string
	q    float64
}{{"p50", 0.5}, {"p99", 0.99}, {"p99.9", 0.999}, {"max", 1}}

func (c *child) recordQuantiles(part string, h *histogram.Histogram) {
	for _, q := range quantiles {
		c.record(part+"-"+q.name, float64(h.Quantile(q.q)))
	}
	c.record(part+"-count", float64(h.Count()))
}
