package db_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/internal/test/crash"
	"github.com/stavedb/stave/internal/vfs"
)

// crashWorkload is one kind of work during which the power is cut.
type crashWorkload struct {
	name    string
	change  func(*db.Options)              // of stepOptions
	prepare func(t *testing.T, m *vfs.Mem) // a store from before; its first state is the workload's first step
	run     func(w *stepWorkload)
}

func noHints(o *db.Options) { seam.Of(o).NoHints = true }

// noRotation leaves, without syncs, everything to the power cut.
func noRotation(o *db.Options) { seam.Of(o).NoHints, o.SegmentSize = true, 1<<20 }

// shortChunks cuts strings of more than 128 bytes into chunks, which several segments share.
func shortChunks(o *db.Options) { seam.Of(o).NoHints, seam.Of(o).ChunkSize = true, 16 }

var crashWorkloads = []crashWorkload{
	{name: "put", change: noRotation, run: life(func(w *stepWorkload) {
		for i := range 24 {
			w.step(w.store.String("k" + strconv.Itoa(i)).Put(filler(i * 50)))
		}
	})},
	{name: "overwrite", change: noRotation, run: life(func(w *stepWorkload) {
		for i := range 24 {
			w.step(w.store.String("k" + strconv.Itoa(i%3)).Put(filler(40 * i)))
		}
	})},
	{name: "delete", change: noRotation, run: life(func(w *stepWorkload) {
		for i := range 8 {
			w.step(w.store.String("k" + strconv.Itoa(i)).Put(filler(150)))
			_, err := w.store.Keyspace().Delete("k"+strconv.Itoa(i-1), "k"+strconv.Itoa(i-2))
			w.step(err)
		}
	})},
	{name: "batch", change: noRotation, run: life(func(w *stepWorkload) {
		for i := range 4 {
			w.step(w.store.Update(func(tx *db.Tx) error {
				for j := range 6 {
					if err := tx.String("k" + strconv.Itoa(i+j)).Put(filler(i * 60)); err != nil {
						return err
					}
				}
				_, err := tx.Hash("h").Put("n", []byte(strconv.Itoa(i)))
				return err
			}))
		}
	})},
	{name: "deadlines", change: noRotation, run: life(func(w *stepWorkload) {
		for i := range 8 {
			key := "k" + strconv.Itoa(i%2)
			w.step(w.store.String(key).Put(filler(60), db.ExpireAt(time.UnixMilli(4e12+int64(i)))))
			_, err := w.store.Set("set").Add(key)
			w.step(err)
			_, err = w.store.Key("set").ExpireAt(time.UnixMilli(4e12 - int64(i)))
			w.step(err)
			_, err = w.store.Key(key).Persist()
			w.step(err)
		}
	})},
	{name: "deadlines of fields", change: noRotation, run: life(func(w *stepWorkload) {
		for i := range 3 {
			h, at := w.store.Hash("h"+strconv.Itoa(i%2)), time.UnixMilli(4e12+int64(i))
			w.step(h.PutWith([]db.Field{{Name: "a", Value: filler(30)}, {Name: "b", Value: filler(20 * i)}}, db.ExpireAt(at)))
			_, err := h.ExpireFieldsAt(at.Add(time.Second), []string{"a", "c"})
			w.step(err)
			_, err = h.PutAll(db.Field{Name: "b"}, db.Field{Name: "c"})
			w.step(err)
			_, err = h.ExpireFieldsAt(time.UnixMilli(1), []string{"b"})
			w.step(err)
			switch i {
			case 0:
				w.step(w.store.Log().SaveIndex())
			case 1:
				w.step(mergeEverything(w.store))
			case 2:
				w.step(w.store.Key("h0").Rename("h1"))
			}
			_, err = h.PersistFields("a")
			w.step(err)
		}
		_, err := w.store.Keyspace().Delete("h0")
		w.step(err)
	})},
	{name: "rotate", change: noHints, run: life(func(w *stepWorkload) {
		for i := range 12 {
			w.step(w.store.String("k" + strconv.Itoa(i)).Put(filler(450)))
		}
	})},
	{name: "merge", change: noHints, run: life(func(w *stepWorkload) {
		for i := range 6 {
			w.step(w.store.String("k" + strconv.Itoa(i%3)).Put(filler(400 + 10*i)))
		}
		w.step(mergeEverything(w.store))
		w.step(w.store.String("k0").Put(nil))
		w.step(first(w.store.Key("k2").Delete()))
		_, err := rewriteNewest(w.store) // has k2 only, and what makes that dead is in no sealed segment yet
		w.step(err)
		w.step(mergeEverything(w.store))
	})},
	{name: "merge and write", change: noHints, run: life(func(w *stepWorkload) {
		for i := range 6 {
			w.step(w.store.String("k" + strconv.Itoa(i%3)).Put(filler(300)))
		}
		done := make(chan error)
		go func() { done <- mergeEverything(w.store) }()
		for i := range 6 {
			w.step(w.store.String("k" + strconv.Itoa(i%4)).Put(filler(100)))
			_, err := w.store.Keyspace().Delete("k" + strconv.Itoa((i+1)%4))
			w.step(err)
		}
		w.step(<-done)
	})},
	{name: "hint", run: life(func(w *stepWorkload) {
		for i := range 6 {
			w.step(w.store.String("k" + strconv.Itoa(i)).Put(filler(500)))
		}
		w.step(mergeEverything(w.store))
	})},
	{name: "manifest", change: noHints, prepare: growManifest, run: life(func(w *stepWorkload) {
		for i := range 4 {
			w.step(w.store.String("k" + strconv.Itoa(i)).Put(filler(700)))
		}
		w.step(mergeEverything(w.store))
	})},
	{name: "reopen", run: func(w *stepWorkload) {
		w.open()
		w.step(nil)
		for i := range 3 {
			for j := range 3 {
				w.step(w.store.String("k" + strconv.Itoa(j)).Put(filler(100 * i)))
			}
			w.close()
			w.open()
			w.step(nil)
		}
		w.close()
	}},
	{name: "index", change: noHints, run: func(w *stepWorkload) {
		for i := range 3 { // opened with the INDEX of the time before, which is older than the log or, after a merge, of no use
			w.open()
			w.step(nil)
			for j := range 4 {
				w.step(w.store.String("k" + strconv.Itoa(j)).Put(filler(60 * i)))
				_, err := w.store.Hash("h").Put(strconv.Itoa(j), filler(10*i))
				w.step(err)
				if j == 1 {
					w.step(w.store.Log().SaveIndex())
				}
			}
			_, err := w.store.Keyspace().Delete("k1", "h")
			w.step(err)
			if i == 1 {
				w.step(mergeEverything(w.store))
			}
			w.close()
		}
	}},
	{name: "hash and set", change: noRotation, run: life(func(w *stepWorkload) {
		for i := range 10 {
			_, err := w.store.Hash("h").Put("f"+strconv.Itoa(i%3), filler(30*i))
			w.step(err)
			_, err = w.store.Set("s").Add(strconv.Itoa(i), strconv.Itoa(i+1))
			w.step(err)
			_, err = w.store.Set("s").Remove(strconv.Itoa(i))
			w.step(err)
		}
		_, err := w.store.Hash("h").Delete("f0", "f1", "f2")
		w.step(err)
	})},
	{name: "long string", change: shortChunks, run: life(func(w *stepWorkload) {
		s := w.store.String("s")
		for i := range 2 {
			w.step(s.Put(filler(200 + 50*i)))
			_, err := s.Append(filler(20))
			w.step(err)
			_, err = s.SetRange(int64(90*i), filler(30))
			w.step(err)
			_, err = w.store.Bitmap("s").Set(int64(4000+i), true)
			w.step(err)
			w.step(s.Put(filler(10 * i)))
			_, err = s.SetRange(600, filler(10)) // from a short string to a sparse one
			w.step(err)
		}
		w.step(mergeEverything(w.store))
		_, err := w.store.Keyspace().Delete("s")
		w.step(err)
	})},
	{name: "list", change: noRotation, run: life(func(w *stepWorkload) {
		for i := range 12 {
			_, err := w.store.List("l").PushBack(filler(i*20), []byte("x"))
			w.step(err)
			_, err = w.store.List("l").PopFront()
			w.step(err)
		}
	})},
	{name: "trimmed list", change: noRotation, run: life(func(w *stepWorkload) {
		for i := range 5 {
			_, err := w.store.List("l").PushBack(filler(i*20), []byte("x"), []byte("y"), filler(50), []byte("z"))
			w.step(err)
			w.step(w.store.List("l").Trim(2, -2))
			switch i {
			case 1:
				w.step(w.store.Log().SaveIndex())
			case 2:
				w.step(mergeEverything(w.store))
			}
			_, err = w.store.List("l").PushFront([]byte("front"), filler(i*30))
			w.step(err)
			_, err = w.store.List("l").PopBackN(2)
			w.step(err)
		}
	})},
	{name: "list that is changed in the middle", change: noRotation, run: life(func(w *stepWorkload) {
		l := w.store.List("l")
		for i := range 5 {
			_, err := l.PushBack([]byte("a"), filler(i*20), []byte("b"), []byte("c"))
			w.step(err)
			_, err = l.InsertAfter([]byte("a"), []byte("x"))
			w.step(err)
			_, err = l.InsertBefore([]byte("x"), []byte("y"))
			w.step(err)
			_, err = l.Remove(1, []byte("b"))
			w.step(err)
			switch i {
			case 1:
				w.step(w.store.Log().SaveIndex())
			case 2:
				w.step(mergeEverything(w.store))
			case 3:
				w.step(l.Trim(2, -2))
			}
			_, err = l.Remove(-1, []byte("x"))
			w.step(err)
		}
	})},
	{name: "sorted set", change: noRotation, run: life(func(w *stepWorkload) {
		for i := range 24 {
			_, err := w.store.SortedSet("z").Add(db.Scored{Member: strconv.Itoa(i % 3), Score: float64(-i)}, db.Scored{Member: "m", Score: 1})
			w.step(err)
		}
	})},
	{name: "stream groups", change: noRotation, run: life(func(w *stepWorkload) {
		s := w.store.Stream("s")
		for i := range 3 {
			g := s.Group("g" + strconv.Itoa(i%2))
			for j := range 3 {
				_, err := s.AddWith(db.StreamAddOptions{ID: db.StreamID{Ms: uint64(i + 1), Seq: uint64(j)}}, db.Field{Name: "f", Value: filler(20 * j)})
				w.step(err)
			}
			if i < 2 {
				w.step(g.Create(db.StreamGroupStart{}))
			}
			_, err := g.Read("a", 2)
			w.step(err)
			_, err = g.Read("b", 2)
			w.step(err)
			_, err = g.Ack(db.StreamID{Ms: 1}, db.StreamID{Ms: 1, Seq: 2})
			w.step(err)
			_, err = g.Claim(db.StreamClaim{Consumer: "b"}, db.StreamID{Ms: 1, Seq: 1})
			w.step(err)
			switch i {
			case 0:
				w.step(w.store.Log().SaveIndex())
				_, err = g.DeleteConsumer("a")
				w.step(err)
			case 1:
				w.step(mergeEverything(w.store))
				_, err = g.Destroy()
				w.step(err)
				w.step(g.Create(db.StreamGroupStart{Last: true}))
			}
		}
		w.step(w.store.Key("s").Rename("t"))
		_, err := w.store.Stream("t").Trim(db.StreamTrim{})
		w.step(err)
		w.step(w.store.Stream("t").SetID(db.StreamID{Ms: 2}, db.StreamSetID{})) // made anew
		_, err = w.store.Key("t").Delete()
		w.step(err)
	})},
	{name: "stream", change: noRotation, run: life(func(w *stepWorkload) {
		s := w.store.Stream("s")
		for i := range 5 {
			for j := range 3 {
				_, err := s.AddWith(db.StreamAddOptions{ID: db.StreamID{Ms: uint64(i + 1), Seq: uint64(j)}}, db.Field{Name: "f", Value: filler(40 * j)})
				w.step(err)
			}
			_, err := s.Delete(db.StreamID{Ms: uint64(i + 1), Seq: uint64(i % 3)})
			w.step(err)
			_, err = s.Trim(db.StreamTrim{MaxLen: 4})
			w.step(err)
			switch i {
			case 1:
				w.step(w.store.Log().SaveIndex())
			case 2:
				w.step(mergeEverything(w.store))
			case 3:
				w.step(w.store.Key("s").Rename("t"))
				s = w.store.Stream("t")
			}
		}
		_, err := s.Trim(db.StreamTrim{})
		w.step(err)
		w.step(s.SetID(db.StreamID{Ms: 6}, db.StreamSetID{}))
		_, err = s.AddWith(db.StreamAddOptions{ID: db.StreamID{Ms: 7}, Trim: &db.StreamTrim{MaxLen: 1}}, db.Field{Name: "f"})
		w.step(err)
	})},
	{name: "libraries", change: noRotation, run: life(func(w *stepWorkload) {
		put := func(name string, n int) {
			w.step(w.store.Update(func(tx *db.Tx) error {
				if err := tx.String("length of " + name).Put([]byte(strconv.Itoa(n))); err != nil {
					return err
				}
				return serverside.DB.PutLibrary(tx, name, string(filler(n)))
			}))
		}
		for i := range 3 {
			put("a", 100*(i+1))
			put("b", 70_000*(i%2)+10) // in two parts, then in one
			switch i {
			case 0:
				w.step(w.store.Log().SaveIndex())
			case 1:
				w.step(mergeEverything(w.store))
			}
			w.step(w.store.Flush())
		}
		put("a", 0) // deletes it
	})},
	{name: "drop collections", run: life(func(w *stepWorkload) {
		for i := range 4 {
			_, err := w.store.List("x").PushBack(filler(100), filler(200))
			w.step(err)
			_, err = w.store.Key("x").Delete()
			w.step(err)
			_, err = w.store.Hash("x").Put("f", filler(100*i))
			w.step(err)
			w.step(w.store.String("x").Put(filler(50)))
			_, err = w.store.Keyspace().Delete("x")
			w.step(err)
		}
		w.step(mergeEverything(w.store))
	})},
	{name: "namespaces", change: noRotation, run: life(func(w *stepWorkload) {
		other, err := w.store.Use(1)
		must(w.t, err)
		for range 2 {
			w.step(w.store.String("k").Put(filler(200)))
			_, err = other.Set("s").Add("a", "b")
			w.step(err)
			w.step(w.store.Swap(0, 1))
			w.step(other.Flush())
		}
		w.step(mergeEverything(w.store))
	})},
	{name: "emptied namespace", change: noHints, run: func(w *stepWorkload) {
		for i := range 3 { // opened by the INDEX, which says nothing of a namespace without keys
			w.open()
			w.step(nil)
			w.step(first(rewriteNewest(w.store)))
			other, err := w.store.Use(1)
			must(w.t, err)
			w.step(w.store.String("stays").Put(filler(30 * i)))
			w.step(other.String("k").Put(filler(50)))
			w.step(w.store.Log().Rotate())
			_, err = other.Key("k").Delete()
			w.step(err)
			w.step(w.store.Log().Rotate())
			w.close()
		}
	}},
	{name: "backup", run: life((*stepWorkload).backups)},
	{name: "life", run: (*stepWorkload).run},
}

// life opens a store, does the work, and closes it.
func life(work func(w *stepWorkload)) func(w *stepWorkload) {
	return func(w *stepWorkload) {
		w.open()
		w.step(nil)
		work(w)
		w.close()
	}
}

func filler(n int) []byte { return []byte(strings.Repeat("some text ", n/10)) }

// growManifest makes a store whose manifest is about to be written anew.
func growManifest(t *testing.T, mem *vfs.Mem) {
	o := stepOptions(mem, db.SyncNone)
	seam.Of(o).NoHints = true
	s, err := db.Open("d", o)
	must(t, err)
	value := make([]byte, 1<<10)
	for i := 0; manifestSize(t, mem) < 63<<10; i++ {
		must(t, s.String("large").Put(value))
		if i%100 == 0 {
			must(t, mergeEverything(s))
		}
	}
	_, err = s.Key("large").Delete()
	must(t, errors.Join(err, mergeEverything(s), s.Close()))
}

func manifestSize(t *testing.T, mem *vfs.Mem) int {
	state, err := crash.ReadState(mem, "d")
	must(t, err)
	return len(state["MANIFEST"])
}
