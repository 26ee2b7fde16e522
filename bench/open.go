package main

import (
	"errors"
	"time"

	"github.com/stavedb/stave/bitcask"
)

// openings is how often a store is opened for one figure, and a peer's.
const (
	openings     = 5
	peerOpenings = 3
)

// openClean makes a store in its first step, and times opening it in each of
// the others. The files are in the page cache; the process is fresh.
func openClean(c *child) error {
	if c.step == 0 {
		return c.with(openOptions{sync: bitcask.SyncNone}, func(s kv) error { return load(s, shuffledKeys(1, 0, c.n)) })
	}
	return c.timeOpen(func(s kv) error { return s.close() })
}

// lonePuts is how many puts, each alone, a process makes before it is killed. They were
// acknowledged: any missing afterwards was still in the memory of the process.
const lonePuts = 10_000

// openKilled does the same, but every step ends by killing itself, after a put
// so that the next one never finds a store that was closed.
func openKilled(c *child) error {
	c.die = true
	if c.step == 0 {
		s, err := c.engine.open(c.path("store"), openOptions{sync: bitcask.SyncNone})
		if err != nil {
			return err
		}
		if err := load(s, shuffledKeys(1, 0, c.n)); err != nil {
			return err
		}
		vals := newValues()
		for i := range lonePuts {
			if err := s.put(keyAt(c.n+i), vals.at(i)); err != nil {
				return err
			}
		}
		return nil
	}
	return c.timeOpen(func(s kv) error {
		if c.step == 1 {
			lost := 0
			for i := range lonePuts {
				if _, ok, err := s.get(nil, keyAt(c.n+i)); err != nil {
					return err
				} else if !ok {
					lost++
				}
			}
			c.record("lost", float64(lost))
		}
		return s.put(keyAt(c.step), newValues().at(c.step))
	})
}

func (c *child) timeOpen(then func(s kv) error) error {
	var s kv
	err := c.profiled("open", func() (err error) {
		begin, cpu := time.Now(), cpuTime()
		s, err = c.engine.open(c.path("store"), openOptions{sync: bitcask.SyncNone})
		c.record("open", float64(time.Since(begin)))
		c.record("cpu", float64(cpuTime()-cpu))
		return err
	})
	if err != nil {
		return err
	}
	// Keys all over the index, parts of which are loaded when they are first needed.
	var slowest time.Duration
	for i := range min(c.n, 1000) {
		key := keyAt(i * c.n / min(c.n, 1000))
		begin := time.Now()
		_, ok, err := s.get(nil, key)
		slowest = max(slowest, time.Since(begin))
		if err != nil || !ok {
			return errors.Join(errLost, err, s.close())
		}
	}
	c.record("first", float64(slowest))
	return then(s)
}
