package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/stavedb/stave/bitcask"
)

// blockSize is the number of operations timed at once. A figure is the median
// of the blocks, so that a stall of the machine spoils one block and not the
// figure.
const blockSize = 10_000

// timed runs fn for 0 to n-1 and returns nanoseconds per call.
func timed(n int, fn func(i int) error) (float64, error) {
	begin := time.Now()
	for i := range n {
		if err := fn(i); err != nil {
			return 0, err
		}
	}
	return float64(time.Since(begin)) / float64(n), nil
}

// blocks times fn for 0 to n-1 in blocks and calls done after each with its
// number and nanoseconds per call.
func blocks(n int, fn func(i int) error, done func(block int, ns float64) error) error {
	for from := 0; from < n; from += blockSize {
		ns, err := timed(min(blockSize, n-from), func(i int) error { return fn(from + i) })
		if err != nil {
			return err
		}
		if err := done(from/blockSize, ns); err != nil {
			return err
		}
	}
	return nil
}

// rawFile is a file that is written with nothing but write(2).
type rawFile struct {
	file *os.File
	fd   int
	buf  []byte
}

func newRawFile(name string) (*rawFile, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	return &rawFile{file: f, fd: int(f.Fd())}, nil
}

func (r *rawFile) write(n int) error {
	if cap(r.buf) < n {
		r.buf = make([]byte, n)
	}
	got, err := syscall.Write(r.fd, r.buf[:n])
	if err == nil && got != n {
		err = fmt.Errorf("wrote %d bytes of %d", got, n)
	}
	return err
}

// putFrame is what one put of the benchmark writes: 24 bytes of frame header
// (the record's checksum is its last field), tag, namespace, key length and two
// bytes of value length, "string:", key and value.
const putFrame = 24 + 1 + 1 + 1 + 2 + len("string:") + keySize + valueSize

// puts loads n keys and overwrites them, and after every block of puts writes
// as many records of the same length with a bare write(2).
func puts(c *child) error {
	raw, err := newRawFile(c.path("raw"))
	if err != nil {
		return err
	}
	defer raw.file.Close()
	vals := newValues()
	pass := func(s kv, part string, keys []string) error {
		var put, write, ratio []float64
		err := blocks(len(keys), func(i int) error { return s.put(keys[i], vals.at(i)) }, func(_ int, ns float64) error {
			bare, err := timed(min(blockSize, len(keys)), func(int) error { return raw.write(putFrame) })
			put, write, ratio = append(put, ns), append(write, bare), append(ratio, ns/bare)
			return err
		})
		if err == nil {
			c.record(part, median(put))
			c.record(part+"-mean", mean(put))
			c.record(part+"-write", median(write))
			c.record(part+"-ratio", median(ratio))
		}
		return err
	}
	// Without syncs: a bare write(2) has none either.
	return c.with(openOptions{sync: bitcask.SyncNone}, func(s kv) error {
		return c.profiled("put", func() error {
			n := c.engine.portion(c.n)
			if err := pass(s, "new", shuffledKeys(1, 0, n)); err != nil {
				return err
			}
			return pass(s, "over", shuffledKeys(2, 0, n))
		})
	})
}

// load puts the keys, many in a commit.
func load(s kv, keys []string) error {
	vals := newValues()
	for from := 0; from < len(keys); from += 1000 {
		if err := s.batch(keys[from:min(from+1000, len(keys))], func(i int) []byte { return vals.at(from + i) }); err != nil {
			return err
		}
	}
	return nil
}

var errLost = errors.New("a key that was put is not there")

func gets(c *child) error {
	return c.with(openOptions{sync: bitcask.SyncNone}, func(s kv) error {
		if err := load(s, shuffledKeys(1, 0, c.n)); err != nil {
			return err
		}
		hits, misses := shuffledKeys(2, 0, c.n), shuffledKeys(3, c.n, c.n)
		var dst []byte
		get := func(keys []string, want, fresh bool) func(i int) error {
			return func(i int) error {
				if fresh {
					dst = nil
				}
				out, ok, err := s.get(dst[:0], keys[i])
				if err == nil && (ok != want || want && len(out) != valueSize) {
					err = errLost
				}
				dst = out
				return err
			}
		}
		if err := c.preads(); err != nil {
			return err
		}
		return c.profiled("get", func() error {
			for _, part := range []struct {
				name  string
				keys  []string
				want  bool
				fresh bool
			}{{"hit", hits, true, true}, {"hit-into", hits, true, false}, {"miss", misses, false, false}} {
				var all []float64
				err := blocks(c.n, get(part.keys, part.want, part.fresh), func(_ int, ns float64) error {
					all = append(all, ns)
					return nil
				})
				if err != nil {
					return fmt.Errorf("%s: %w", part.name, err)
				}
				c.record(part.name, median(all))
			}
			return nil
		})
	})
}

// preads times what a store without a mapping would pay the kernel for a get:
// pread(2) of a record at a random place of a file as long as the store.
func (c *child) preads() error {
	raw, err := newRawFile(c.path("raw"))
	if err != nil {
		return err
	}
	defer raw.file.Close()
	for range c.n {
		if err := raw.write(putFrame); err != nil {
			return err
		}
	}
	places := rand.New(rand.NewPCG(4, 1)).Perm(c.n)
	var all []float64
	err = blocks(c.n, func(i int) error {
		_, err := syscall.Pread(raw.fd, raw.buf[:putFrame], int64(places[i]*putFrame))
		return err
	}, func(_ int, ns float64) error {
		all = append(all, ns)
		return nil
	})
	if err != nil {
		return err
	}
	c.record("pread", median(all))
	return os.Remove(c.path("raw"))
}

// mixed lets two threads put and get alternately, at random, in a loaded
// store. The figure is how long one operation takes its thread.
func mixed(c *child) error {
	const threads = 2
	return c.with(openOptions{sync: bitcask.SyncNone}, func(s kv) error {
		if err := load(s, shuffledKeys(1, 0, c.n)); err != nil {
			return err
		}
		vals := newValues()
		keys := shuffledKeys(2, 0, c.n)[:c.engine.portion(c.n)]
		return c.profiled("mixed", func() error {
			var wait sync.WaitGroup
			errs := make([]error, threads)
			all := make([][]float64, threads)
			for thread := range threads {
				mine := keys[thread*len(keys)/threads : (thread+1)*len(keys)/threads]
				wait.Go(func() {
					var dst []byte
					errs[thread] = blocks(len(mine), func(i int) error {
						if i%2 == 0 {
							return s.put(mine[i], vals.at(i))
						}
						out, _, err := s.get(dst[:0], mine[i])
						dst = out
						return err
					}, func(_ int, ns float64) error {
						all[thread] = append(all[thread], ns)
						return nil
					})
				})
			}
			wait.Wait()
			for thread := range threads {
				for _, ns := range all[thread] {
					c.record("op", ns)
				}
			}
			return errors.Join(errs...)
		})
	})
}

// batches alternates between blocks of single puts and commits of 1000.
func batches(c *child) error {
	const size = 1000
	return c.with(openOptions{sync: bitcask.SyncNone}, func(s kv) error {
		vals := newValues()
		n := c.engine.portion(c.n / 2)
		singles, batched := shuffledKeys(1, 0, n), shuffledKeys(2, c.n, n)
		return c.profiled("batch", func() error {
			var one, many, ratio []float64
			err := blocks(len(singles), func(i int) error { return s.put(singles[i], vals.at(i)) }, func(block int, ns float64) error {
				from := block * blockSize
				to := min(from+blockSize, len(batched))
				each, err := timed((to-from+size-1)/size, func(i int) error {
					from := from + i*size
					return s.batch(batched[from:min(from+size, to)], func(i int) []byte { return vals.at(from + i) })
				})
				each /= size
				one, many, ratio = append(one, ns), append(many, each), append(ratio, ns/each)
				return err
			})
			if err != nil {
				return err
			}
			c.record("single", median(one))
			c.record("batched", median(many))
			c.record("ratio", median(ratio))
			return nil
		})
	})
}

// syncPuts lets 64 writers put for some seconds with every put on disk before
// it returns, and times fsync of an appended record alone for comparison.
func syncPuts(c *child) error {
	const writers, duration = 64, 3 * time.Second
	raw, err := newRawFile(c.path("raw"))
	if err != nil {
		return err
	}
	defer raw.file.Close()
	var fsync []float64
	for range 200 {
		begin := time.Now()
		if err := errors.Join(raw.write(putFrame), raw.file.Sync()); err != nil {
			return err
		}
		fsync = append(fsync, float64(time.Since(begin)))
	}
	c.record("fsync", median(fsync))
	return c.with(openOptions{sync: bitcask.SyncAlways}, func(s kv) error {
		return c.profiled("sync", func() error {
			vals := newValues()
			var done atomic.Int64
			var wait sync.WaitGroup
			errs := make([]error, writers)
			begin := time.Now()
			for w := range writers {
				r := rand.New(rand.NewPCG(uint64(w), 2))
				wait.Go(func() {
					for time.Since(begin) < duration && errs[w] == nil {
						errs[w] = s.put(keyAt(r.IntN(c.n)), vals.at(w))
						done.Add(1)
					}
				})
			}
			wait.Wait()
			c.record("op", float64(time.Since(begin))/float64(done.Load()))
			return errors.Join(errs...)
		})
	})
}
