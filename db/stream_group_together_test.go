package db_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/structures"
)

// groupCall is a call on a stream or a group of it, which says what it has returned.
type groupCall func(k keys) string

// randomGroupCall draws a call that reads or changes a group.
func randomGroupCall(rng *rand.Rand, last *uint64) groupCall {
	key, name, consumer := []string{"s", "t"}[rng.IntN(8)/7], []string{"g", "h"}[rng.IntN(6)/5], []string{"a", "b"}[rng.IntN(4)/3]
	n, id := 1+rng.IntN(3)*rng.IntN(4), db.StreamID{Ms: uint64(rng.Int64N(int64(*last + 2)))}
	said := func(v any, err error) string { return fmt.Sprint(v, err) }
	on := func(k keys) db.StreamGroup { return k.Stream(key).Group(name) }
	switch rng.IntN(72) {
	case 0, 29, 30, 31:
		return func(k keys) string { return said(nil, on(k).Set(db.StreamGroupStart{ID: id})) }
	case 1:
		return func(k keys) string { return said(on(k).Destroy()) }
	case 2, 3, 28:
		return func(k keys) string { return said(nil, on(k).Create(db.StreamGroupStart{Make: true})) }
	case 4:
		return func(k keys) string { return said(on(k).DeleteConsumer(consumer)) }
	case 5:
		return func(k keys) string { return said(on(k).CreateConsumer(consumer)) }
	case 6:
		return func(k keys) string { return said(k.Key(key).Delete()) }
	case 7:
		return func(k keys) string { return said(nil, k.Key(key).Rename("t")) }
	case 8:
		return func(k keys) string { return said(on(k).Claim(db.StreamClaim{Consumer: consumer}, id)) }
	case 9:
		return func(k keys) string { return said(k.Stream(key).Delete(id)) }
	case 36:
		return func(k keys) string { return said(nil, k.Key("s").CopyTo(0, "t")) }
	case 37:
		claim := db.StreamClaim{Consumer: consumer, Force: true, JustID: rng.IntN(2) == 0, Last: id}
		return func(k keys) string { return said(on(k).Claim(claim, id, db.StreamID{Ms: id.Ms + 1})) }
	case 38:
		return func(k keys) string {
			list, next, gone, err := on(k).AutoClaim(db.StreamAutoClaim{Consumer: consumer, From: id, Count: n})
			return fmt.Sprint(list, next, gone, err)
		}
	case 39:
		return func(k keys) string { return said(k.Stream(key).Trim(db.StreamTrim{MaxLen: n})) }
	case 40:
		return func(k keys) string { return said(k.Key(key).Expire(time.Duration(n) * 3 * time.Second)) }
	case 41:
		return func(k keys) string {
			payload, err := k.Key("s").Dump()
			if err == nil {
				err = k.Key("t").Restore(payload)
			}
			return said(nil, err)
		}
	case 10:
		return func(k keys) string { return said(on(k).History(consumer, db.StreamID{}, n)) }
	case 11, 12, 13, 14, 20, 21, 22, 23, 24, 25, 26, 27:
		*last++
		id := db.StreamID{Ms: *last}
		return func(k keys) string {
			return said(k.Stream(key).AddWith(db.StreamAddOptions{ID: id}, db.Field{Name: "f", Value: []byte("v")}))
		}
	case 15:
		return func(k keys) string {
			how := structures.StreamGroupRead{Consumer: consumer, Count: n, NoAck: true}
			var ids []db.StreamID
			return said(&ids, on(k).VisitRead(how, func(id db.StreamID, _ [][]byte) bool { ids = append(ids, id); return true }))
		}
	case 16, 17, 18, 32, 33, 34, 35:
		return func(k keys) string { return said(on(k).Ack(id, db.StreamID{Ms: id.Ms + 1})) }
	case 42, 43: // as many as take several pages of the index
		first := *last + 1
		*last += 150
		return func(k keys) (text string) {
			for ms := first; ms < first+150; ms++ {
				text = said(k.Stream(key).AddWith(db.StreamAddOptions{ID: db.StreamID{Ms: ms}}, db.Field{Name: "f", Value: []byte("v")}))
			}
			return text
		}
	case 44, 45, 46, 47: // ends early
		stop := 1 + rng.IntN(n)
		return func(k keys) string {
			var ids []db.StreamID
			how := structures.StreamGroupRead{Consumer: consumer, Count: 2 * n}
			return said(&ids, on(k).VisitRead(how, func(id db.StreamID, _ [][]byte) bool { ids = append(ids, id); return len(ids) < stop }))
		}
	case 19:
		return func(k keys) string { return said(on(k).Info()) }
	}
	return func(k keys) string { return said(on(k).Read(consumer, n)) }
}

// recovered makes a panic of an update an error.
func recovered(update func(func(*db.Tx) error) error, fn func(*db.Tx) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return update(fn)
}

// inSpace is a store or a transaction on another namespace.
func inSpace(t *testing.T, k keys, space int) keys {
	if tx, is := k.(*db.Tx); is {
		return ok[*db.Tx](t)(tx.Use(space))
	}
	return ok[*db.Store](t)(k.(*db.Store).Use(space))
}

// describeGroups is all that there is of the groups.
func describeGroups(t *testing.T, k keys) (text string) {
	for _, key := range []string{"s", "t"} {
		groups := ok[[]db.StreamGroupInfo](t)(k.Stream(key).Groups())
		text += fmt.Sprintln(key, groups)
		for _, g := range groups {
			on := k.Stream(key).Group(g.Name)
			text += fmt.Sprintln(ok[[]db.StreamConsumer](t)(on.Consumers()), ok[[]db.StreamPending](t)(on.Pending(db.StreamPendingRange{To: db.MaxStreamID})))
		}
	}
	return text
}

// TestStreamGroupCallsOfOneTransaction holds calls that share a transaction, which writes the record of a group once,
// against the same calls by themselves. Parts of the transaction are rolled back.
func TestStreamGroupCallsOfOneTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rng, last := chance.Rand(t), uint64(8)
		together, alone := vfs.NewMem(), vfs.NewMem()
		open := func(fs vfs.FS) *db.Store {
			return ok[*db.Store](t)(db.Open("d", seam.With(&db.Options{}, seam.Options{FS: fs, YieldEvery: 1})))
		}
		a, b := open(together), open(alone)
		for round := range 500 {
			time.Sleep(time.Duration(rng.IntN(8)) * time.Second)
			var kept []groupCall
			var got []string
			whole, update := rng.IntN(2) == 0, a.Update
			if !whole {
				update = func(fn func(*db.Tx) error) error { return a.UpdateKeys([]string{"s", "t"}, fn) }
			}
			must(t, recovered(update, func(tx *db.Tx) error {
				type mark struct {
					at   db.Savepoint
					kept int
				}
				var marks []mark
				for range 2 + rng.IntN(30) {
					switch n := len(marks); {
					case rng.IntN(6) == 0:
						marks = append(marks, mark{tx.Savepoint(), len(kept)})
					case n > 0 && rng.IntN(4) == 0:
						m := marks[n-1]
						must(t, tx.RollbackTo(m.at))
						kept, got, marks = kept[:m.kept], got[:m.kept], marks[:n-1]
					default:
						call, space := randomGroupCall(rng, &last), 0
						if whole {
							space = rng.IntN(5) / 4
						}
						kept = append(kept, func(k keys) string { return call(inSpace(t, k, space)) })
						got = append(got, kept[len(kept)-1](tx))
					}
				}
				return nil
			}))
			var want []string
			for _, call := range kept {
				want = append(want, call(b))
			}
			if !slices.Equal(got, want) {
				t.Fatalf("round %d:\n%q\nby themselves\n%q", round, got, want)
			}
			if round%10 == 9 {
				must(t, a.Close())
				a = open(together)
			}
			for space := range 2 {
				if got, want := describeGroups(t, inSpace(t, a, space)), describeGroups(t, inSpace(t, b, space)); got != want {
					t.Fatalf("round %d: groups of namespace %d\n%s\nby themselves\n%s", round, space, got, want)
				}
			}
		}
		must(t, a.Close())
		must(t, b.Close())
	})
}

// TestStreamGroupAfterRollback: what a transaction notes of a group does not outlast a rollback, however much is written
// after it.
func TestStreamGroupAfterRollback(t *testing.T) {
	for writes := range 12 {
		s := ok[*db.Store](t)(db.OpenMemory(nil))
		stream := s.Stream("stream")
		for ms := range uint64(3) {
			ok[db.StreamID](t)(stream.AddWith(db.StreamAddOptions{ID: db.StreamID{Ms: ms + 1}}, db.Field{Name: "f"}))
		}
		must(t, stream.Group("g").Create(db.StreamGroupStart{}))
		must(t, s.Update(func(tx *db.Tx) error {
			group := tx.Stream("stream").Group("g")
			for _, consumer := range []string{"a", "a", "b"} {
				at := tx.Savepoint()
				entries := ok[[]db.StreamEntry](t)(group.Read(consumer, 1))
				equal(t, fmt.Sprint("first of ", writes), entries[0].ID.Ms, 1)
				must(t, tx.RollbackTo(at))
				for i := range writes {
					must(t, tx.String(fmt.Sprint(consumer, i)).Put([]byte("v")))
				}
			}
			return nil
		}))
		must(t, s.Close())
	}
}
