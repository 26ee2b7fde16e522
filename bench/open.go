package main

import (
	"errors"
	"slices"
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
			lost, err := c.countLost(s)
			if err != nil {
				return err
			}
			c.record("lost", float64(lost))
		}
		return s.put(keyAt(c.step), newValues().at(c.step))
	})
}

// countLost counts the puts that the kill took: the last ones, back to a thousand that are all there. A peer may have lost
// of those that were loaded, too: what of its log the process still held is a matter of chance.
func (c *child) countLost(s kv) (lost int, err error) {
	const portion = 1000
	keys := shuffledKeys(1, 0, c.n)
	for i := range lonePuts {
		keys = append(keys, keyAt(c.n+i))
	}
	for whole := false; !whole && len(keys) > 0; {
		from := max(len(keys)-portion, 0)
		before := lost
		for _, key := range keys[from:] {
			_, ok, err := s.get(nil, key)
			if err != nil {
				return lost, err
			}
			if !ok {
				lost++
			}
		}
		keys, whole = keys[:from], lost == before
	}
	if lost > 0 && !c.engine.isPeer() {
		return lost, errLost
	}
	return lost, nil
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
	var took []float64
	for i := range min(c.n, 1000) {
		key := keyAt(i * c.n / min(c.n, 1000))
		begin := time.Now()
		_, ok, err := s.get(nil, key)
		took = append(took, float64(time.Since(begin)))
		if err == nil && !ok && !(c.die && c.engine.isPeer()) { // countLost
			err = errLost
		}
		if err != nil {
			return errors.Join(err, s.close())
		}
	}
	slices.Sort(took)
	c.record("first", took[len(took)-1])
	c.record("first-p99", took[len(took)*99/100])
	return then(s)
}
