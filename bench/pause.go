package main

import (
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/histogram"
	"github.com/stavedb/stave/keydir"
)

// pauseOfNothing is what the machine and the Go runtime do to a loop that only
// looks at the clock: no call can be known to pause for less.
func pauseOfNothing(c *child) error {
	return c.timeEach(func(string, int) error { return nil })
}

// slowestInsert is the index alone, with no log and no locks.
func slowestInsert(c *child) error {
	dir, seed := keydir.NewDirectory(keydir.Seed{1, 2}), keydir.Seed{1, 2}
	return c.timeEach(func(key string, i int) error {
		dir.Insert(seed.Hash(key), keydir.Slot{Type: keydir.String, Loc: keydir.MakeLoc(1, uint32(i)*16, 155)})
		return nil
	})
}

// slowestWrite is how long the kernel alone can take: single writes of as many
// bytes as a put.
func slowestWrite(c *child) error {
	raw, err := newRawFile(c.path("raw"))
	if err != nil {
		return err
	}
	defer raw.file.Close()
	return c.timeEach(func(string, int) error { return raw.write(putFrame) })
}

// slowestPutNoSync keeps the disk out: no syncs, one segment.
func slowestPutNoSync(c *child) error {
	return c.slowest(openOptions{sync: bitcask.SyncNone, segmentSize: 2 << 30})
}

func slowestPut(c *child) error { return c.slowest(openOptions{}) }

func (c *child) slowest(o openOptions) error {
	s, err := openBitcask(c.path("store"), o)
	if err != nil {
		return err
	}
	vals := newValues()
	err = c.profiled("load", func() error {
		return c.timeEach(func(key string, i int) error { return s.put(key, vals.at(i)) })
	})
	if err != nil {
		return err
	}
	return s.close()
}

func (c *child) timeEach(fn func(key string, i int) error) error {
	var h histogram.Histogram
	for i := range c.n {
		key := keyAt(i) // made here: a list of all would keep the collector busy meanwhile
		begin := time.Now()
		if err := fn(key, i); err != nil {
			return err
		}
		h.Add(time.Since(begin))
	}
	c.recordQuantiles("each", &h)
	return nil
}
