package main

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/nutsdb/nutsdb"
	"github.com/stavedb/stave/db"
)

// collections are embedded lists, sets and sorted sets under measurement. Every call is a commit of its own, without
// syncs.
type collections struct {
	name  string
	load  func(what string, from, to int) error // elements of "list", "set" or "zset", in one commit
	calls map[string]func(i, n int) error       // by label; those of collectionCalls
	close func() error
}

// collectionCalls are timed, on n elements; those that add are followed by those that take away again.
var collectionCalls = []string{
	"list: push back", "list: pop back", "list: 10 by index",
	"set: add", "set: remove", "set: is member",
	"zset: add", "zset: remove", "zset: score", "zset: rank", "zset: 10 by rank",
}

func openStaveCollections(dir string) (*collections, error) {
	s, err := db.Open(dir, &db.Options{NoMerge: true, Sync: db.SyncNone})
	if err != nil {
		return nil, err
	}
	return &collections{
		name: "db",
		load: func(what string, from, to int) error {
			return s.Update(func(tx *db.Tx) error {
				for i := from; i < to; i++ {
					var err error
					switch what {
					case "list":
						_, err = tx.List("list").PushBack([]byte(element(i)))
					case "set":
						_, err = tx.Set("set").Add(element(i))
					default:
						_, err = tx.SortedSet("zset").Add(db.Scored{Member: element(i), Score: float64(scramble(i))})
					}
					if err != nil {
						return err
					}
				}
				return nil
			})
		},
		calls: staveCalls(s),
		close: s.Close,
	}, nil
}

func openNutsCollections(dir string) (*collections, error) {
	options := nutsdb.DefaultOptions
	options.Dir, options.SyncEnable = dir, false
	options.EntryIdxMode = nutsdb.HintKeyAndRAMIdxMode
	s, err := nutsdb.Open(options)
	if err != nil {
		return nil, err
	}
	kinds := []uint16{nutsdb.DataStructureList, nutsdb.DataStructureSet, nutsdb.DataStructureSortedSet}
	err = s.Update(func(tx *nutsdb.Tx) error {
		for _, kind := range kinds {
			if err := tx.NewBucket(kind, nutsdbBucket); err != nil {
				return err
			}
		}
		return nil
	})
	return &collections{
		name: "nutsdb",
		load: func(what string, from, to int) error {
			return s.Update(func(tx *nutsdb.Tx) error {
				for i := from; i < to; i++ {
					var err error
					switch what {
					case "list":
						err = tx.RPush(nutsdbBucket, nutsKey, []byte(element(i)))
					case "set":
						err = tx.SAdd(nutsdbBucket, nutsKey, []byte(element(i)))
					default:
						err = tx.ZAdd(nutsdbBucket, nutsKey, float64(scramble(i)), []byte(element(i)))
					}
					if err != nil {
						return err
					}
				}
				return nil
			})
		},
		calls: nutsCalls(s),
		close: s.Close,
	}, err
}

func staveCalls(s *db.Store) map[string]func(i, n int) error {
	list, set, zset := s.List("list"), s.Set("set"), s.SortedSet("zset")
	return map[string]func(i, n int) error{
		"list: push back": func(i, _ int) error { return errOf(list.PushBack([]byte(element(i)))) },
		"list: pop back":  func(_, _ int) error { return errOf(list.PopBack()) },
		"list: 10 by index": func(i, n int) error {
			from := int64(i % (n - some))
			got, err := list.Range(from, from+some-1)
			return errors.Join(err, wrongCount(len(got), some))
		},
		"set: add":       func(i, n int) error { return errOf(set.Add(element(n + i))) },
		"set: remove":    func(i, n int) error { return errOf(set.Remove(element(n + i))) },
		"set: is member": func(i, n int) error { return errOf(set.Has(element(i % n))) },
		"zset: add": func(i, n int) error {
			return errOf(zset.Add(db.Scored{Member: element(n + i), Score: float64(scramble(n + i))}))
		},
		"zset: remove": func(i, n int) error { return errOf(zset.Remove(element(n + i))) },
		"zset: score":  func(i, n int) error { return errOf(zset.Score(element(i % n))) },
		"zset: rank":   func(i, n int) error { return errOf(zset.Rank(element(i % n))) },
		"zset: 10 by rank": func(i, n int) error {
			from := int64(i % (n - some))
			got, err := zset.Range(db.RankRange{Start: from, Stop: from + some - 1})
			return errors.Join(err, wrongCount(len(got), some))
		},
	}
}

// nutsKey is the key of every structure: each has a bucket of its own kind.
var nutsKey = []byte("key")

func nutsCalls(s *nutsdb.DB) map[string]func(i, n int) error {
	calls := nutsReads(s)
	maps.Copy(calls, nutsWrites(s.Update))
	return calls
}

func nutsWrites(write func(fn func(tx *nutsdb.Tx) error) error) map[string]func(i, n int) error {
	return map[string]func(i, n int) error{
		"list: push back": func(i, _ int) error {
			return write(func(tx *nutsdb.Tx) error { return tx.RPush(nutsdbBucket, nutsKey, []byte(element(i))) })
		},
		"list: pop back": func(_, _ int) error {
			return write(func(tx *nutsdb.Tx) error { return errOf(tx.RPop(nutsdbBucket, nutsKey)) })
		},
		"set: add": func(i, n int) error {
			return write(func(tx *nutsdb.Tx) error { return tx.SAdd(nutsdbBucket, nutsKey, []byte(element(n+i))) })
		},
		"set: remove": func(i, n int) error {
			return write(func(tx *nutsdb.Tx) error { return tx.SRem(nutsdbBucket, nutsKey, []byte(element(n+i))) })
		},
		"zset: add": func(i, n int) error {
			return write(func(tx *nutsdb.Tx) error {
				return tx.ZAdd(nutsdbBucket, nutsKey, float64(scramble(n+i)), []byte(element(n+i)))
			})
		},
		"zset: remove": func(i, n int) error {
			return write(func(tx *nutsdb.Tx) error { return tx.ZRem(nutsdbBucket, nutsKey, []byte(element(n+i))) })
		},
	}
}

func nutsReads(s *nutsdb.DB) map[string]func(i, n int) error {
	return map[string]func(i, n int) error{
		"list: 10 by index": func(i, n int) error {
			from := i % (n - some)
			return s.View(func(tx *nutsdb.Tx) error {
				got, err := tx.LRange(nutsdbBucket, nutsKey, from, from+some-1)
				return errors.Join(err, wrongCount(len(got), some))
			})
		},
		"set: is member": func(i, n int) error {
			return s.View(func(tx *nutsdb.Tx) error { return errOf(tx.SIsMember(nutsdbBucket, nutsKey, []byte(element(i%n)))) })
		},
		"zset: score": func(i, n int) error {
			return s.View(func(tx *nutsdb.Tx) error { return errOf(tx.ZScore(nutsdbBucket, nutsKey, []byte(element(i%n)))) })
		},
		"zset: rank": func(i, n int) error {
			return s.View(func(tx *nutsdb.Tx) error { return errOf(tx.ZRank(nutsdbBucket, nutsKey, []byte(element(i%n)))) })
		},
		"zset: 10 by rank": func(i, n int) error {
			from := 1 + i%(n-some) // ranks begin with 1
			return s.View(func(tx *nutsdb.Tx) error {
				got, err := tx.ZRangeByRank(nutsdbBucket, nutsKey, from, from+some-1)
				return errors.Join(err, wrongCount(len(got), some))
			})
		},
	}
}

// Figures of a call are medians of rounds. A slow store makes fewer calls in one.
const (
	collectionRounds = 3
	collectionCount  = 2000
	collectionTime   = 100 * time.Millisecond
	collectionLoad   = 20 * time.Second // who takes longer has no figures at that size
)

var errSlow = errors.New("loading takes too long")

// embedded loads the collections of each store and times calls on them.
func embedded(c *child) (err error) {
	n := structureSizes(c.n)[c.step]
	for i, open := range []func(dir string) (*collections, error){openStaveCollections, openNutsCollections} {
		s, err := open(c.path(fmt.Sprintf("%d-%d", c.step, i)))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.close()) }()
		begin := time.Now()
		for _, what := range []string{"list", "set", "zset"} {
			err := inCommits(n, func(from, to int) error {
				if time.Since(begin) > collectionLoad {
					return errSlow
				}
				return s.load(what, from, to)
			})
			if errors.Is(err, errSlow) {
				fmt.Fprintf(os.Stderr, " (%s: %d elements are not loaded after %s)", s.name, n, collectionLoad)
				return nil // those before it have been timed
			}
			if err != nil {
				return fmt.Errorf("%s: loading a %s: %w", s.name, what, err)
			}
		}
		if err := c.timeCollections(s, n); err != nil {
			return err
		}
	}
	return nil
}

// timeCollections times the calls of a store whose collections have n elements.
func (c *child) timeCollections(s *collections, n int) error {
	took := map[string][]float64{}
	for round := range collectionRounds {
		r := rand.New(rand.NewPCG(11, uint64(round)))
		made := 0
		for _, label := range collectionCalls {
			// Added elements are removed by the next call.
			count := min(collectionCount, n/2)
			takes := label == "list: pop back" || strings.HasSuffix(label, "remove")
			if takes {
				count = made
			}
			first := r.IntN(n)
			if takes || strings.HasSuffix(label, "add") {
				first = 0
			}
			begin := time.Now()
			for made = 0; made < count; made++ {
				if err := s.calls[label](first+made*some, n); err != nil {
					return fmt.Errorf("%s, %s: %w", s.name, label, err)
				}
				if !takes && time.Since(begin) > collectionTime {
					made++
					break
				}
			}
			took[label] = append(took[label], float64(time.Since(begin))/float64(max(made, 1)))
		}
	}
	for label, list := range took {
		c.record(fmt.Sprintf("%s-%d-%s", label, c.step, s.name), median(list))
	}
	return nil
}
