package db_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

// asReplica is the value of a store that is a replica.
var asReplica = []byte{serverside.IsReplica}

// originAt is a position.
func originAt(offset int64) (o serverside.Origin) {
	copy(o.ReplID[:], strings.Repeat("0123456789", 4))
	o.Offset, o.Database = offset, 3
	return o
}

// holds is what a store has in its first namespaces, its libraries and its origin, for a comparison.
func holds(t *testing.T, s *db.Store) string {
	t.Helper()
	var b strings.Builder
	for ns := range 3 {
		view := ok[*db.Store](t)(s.Use(ns))
		keys := ok[[]string](t)(view.Keyspace().Keys("*"))
		slices.Sort(keys)
		for _, key := range keys {
			fmt.Fprintf(&b, "%d/%s=%s ", ns, key, content(t, view, key))
		}
	}
	libraries := ok[map[string]string](t)(serverside.DB.Libraries(s))
	o, known := serverside.DB.Origin(s)
	fmt.Fprintf(&b, "%v %d %t", libraries, o.Offset, known)
	return b.String()
}

// load puts some keys into the shadows.
func load(t *testing.T, s *db.Store) error {
	if err := serverside.DB.BeginLoading(s); err != nil {
		return err
	}
	for i := range 3 {
		err := s.UpdateKeys([]string{"a", "new"}, func(tx *db.Tx) error {
			serverside.DB.Apply(tx)
			shadow, err := serverside.DB.Shadow(tx, i%2)
			if err == nil {
				err = shadow.String("new").Put([]byte(fmt.Sprint(i)), db.ExpireAt(time.UnixMilli(1)))
			}
			if err == nil {
				_, err = shadow.Hash("a").Put("f", []byte("v"))
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// TestInstallAtEveryStep: a synchronization that is killed before any operation on a file leaves the old data with the old
// libraries and origin, or the new with the new; and never a shadow.
func TestInstallAtEveryStep(t *testing.T) {
	mem := vfs.NewMem()
	fault := vfstest.NewFault(mem)
	openIn := func(fs vfs.FS) *db.Store {
		return ok[*db.Store](t)(db.Open("store", seam.With(&db.Options{SegmentSize: 1 << 16, NoMerge: true}, seam.Options{FS: fs})))
	}
	s := openIn(fault)
	must(t, s.String("old").Put([]byte("1")))
	must(t, ok[*db.Store](t)(s.Use(2)).String("old").Put([]byte("2")))
	must(t, s.Update(func(tx *db.Tx) error { return serverside.DB.PutLibrary(tx, "gone", "text") }))
	must(t, serverside.DB.SetReplicaOf(s, asReplica, true))
	must(t, s.Update(func(tx *db.Tx) error {
		serverside.DB.Apply(tx)
		return serverside.DB.PutOrigin(tx, originAt(7))
	}))
	before := holds(t, s)
	var mu sync.Mutex // guards killed: the store syncs by itself now and then
	var killed []*vfs.Mem
	kill := func() {
		mu.Lock()
		defer mu.Unlock()
		killed = append(killed, mem.Clone())
	}
	fault.Inject(vfstest.Rule{Sticky: true, Do: func(vfstest.Event) { kill() }})
	must(t, load(t, s))
	equal(t, "while it loads", holds(t, s), before)
	kill()
	must(t, serverside.DB.Install(s, map[string]string{"lib": "new"}, originAt(1000)))
	after := holds(t, s)
	kill()
	must(t, s.Close())
	kill()
	if after == before || !strings.Contains(after, "1000 true") || !strings.Contains(after, "map[lib:new]") || !strings.Contains(after, "0/a=") {
		t.Fatalf("installed: %s", after)
	}
	counts := map[string]int{}
	for i, fs := range killed {
		s := openIn(fs)
		have := holds(t, s)
		if counts[have]++; have != before && have != after {
			t.Errorf("step %d of %d: %s", i, len(killed), have)
		}
		for _, ns := range s.Log().Namespaces() {
			if ns > 15 {
				t.Errorf("step %d: namespace %d holds keys", i, ns)
			}
		}
		if !errors.Is(s.String("x").Put([]byte("x")), db.ErrReplica) {
			t.Errorf("step %d: it is no replica any more", i)
		}
		_, err := s.CheckReplay(context.Background(), func(f bitcask.Finding) { t.Errorf("step %d: %v", i, f) })
		must(t, err)
		must(t, s.Close())
	}
	if counts[before] < 3 || counts[after] < 2 {
		t.Errorf("%d states with the old data, %d with the new", counts[before], counts[after])
	}
}

// TestLoadingFails: what was loaded goes, and the store is what it was; keys in the place of the shadows are not touched.
func TestLoadingFails(t *testing.T) {
	s := openMemory(t)
	must(t, s.String("old").Put([]byte("1")))
	must(t, serverside.DB.SetReplicaOf(s, asReplica, true))
	before := holds(t, s)
	must(t, load(t, s))
	equal(t, "namespaces that are shown", len(s.Stats().Namespaces), 1)
	must(t, serverside.DB.EndLoading(s))
	must(t, serverside.DB.EndLoading(s))
	equal(t, "after it", holds(t, s), before)
	must(t, load(t, s)) // in place of what the one before has left
	must(t, load(t, s))
	must(t, serverside.DB.Install(s, nil, originAt(1)))
	if !strings.Contains(holds(t, s), "1/a=") {
		t.Errorf("installed: %s", holds(t, s))
	}
	mem := vfs.NewMem()
	wide := ok[*db.Store](t)(db.Open("store", seam.With(&db.Options{Namespaces: 65536}, seam.Options{FS: mem})))
	must(t, ok[*db.Store](t)(wide.Use(65_510)).String("mine").Put([]byte("1")))
	if err := serverside.DB.BeginLoading(wide); err == nil {
		t.Error("a store of 65,536 namespaces has shadows")
	}
	must(t, wide.Close())
	narrow := ok[*db.Store](t)(db.Open("store", seam.With(&db.Options{}, seam.Options{FS: mem})))
	if err := serverside.DB.BeginLoading(narrow); err == nil || !strings.Contains(err.Error(), "65510") {
		t.Errorf("keys in the way: %v", err)
	}
	equal(t, "keys in the way", narrow.Log().Len(65_510), 1)
	must(t, narrow.Close())
}

// TestReplicaIsWrittenByItsMasterAlone: every other write fails at its end, and nothing expires, until that is over.
func TestReplicaIsWrittenByItsMasterAlone(t *testing.T) {
	s := openMemory(t)
	must(t, s.String("a").Put([]byte("1")))
	must(t, s.String("soon").Put([]byte("1"), db.TTL(20*time.Millisecond)))
	must(t, serverside.DB.SetReplicaOf(s, asReplica, true))
	popped := make(chan error, 1)
	go func() {
		_, err := s.List("list").PopFrontWait(context.Background())
		popped <- err
	}()
	for s.Waiters() == 0 {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(50 * time.Millisecond)
	for name, err := range map[string]error{
		"a call": s.String("a").Put([]byte("2")), "Update": s.Update(func(tx *db.Tx) error { return tx.String("b").Put(nil) }),
		"FlushAll": s.FlushAll(), "Swap": s.Swap(0, 1), "a library": s.Update(func(tx *db.Tx) error { return serverside.DB.PutLibrary(tx, "l", "t") }),
		"an expired key": s.Update(func(tx *db.Tx) error { return tx.String("soon").Put(nil) }),
	} {
		if !errors.Is(err, db.ErrReplica) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := s.String("soon").Get()
	equal(t, "a read of what has expired", err, db.ErrNotFound)
	equal(t, "keys", s.Len(), 2)
	must(t, s.Update(func(tx *db.Tx) error {
		serverside.DB.Apply(tx)
		if _, err := tx.List("list").PushBack([]byte("x")); err != nil {
			return err
		}
		if _, err := tx.String("soon").Append([]byte("2")); err != nil { // for the master it is there
			return err
		}
		value, err := tx.String("soon").Get()
		if err != nil || string(value) != "12" {
			return fmt.Errorf("a key that has expired here is %q, %w", value, err)
		}
		_, err = tx.Key("a").ExpireAt(time.UnixMilli(1))
		return errors.Join(err, serverside.DB.PutOrigin(tx, originAt(5)))
	}))
	if err := <-popped; !errors.Is(err, db.ErrReadOnly) {
		t.Errorf("who waited: %v", err)
	}
	equal(t, "keys", s.Len(), 3)
	o, known := serverside.DB.Origin(s)
	equal(t, "origin", o, originAt(5))
	equal(t, "origin", known, true)
	must(t, serverside.DB.FlushWith(s, originAt(6), 2))
	must(t, serverside.DB.SwapWith(s, originAt(7), 0, 1))
	equal(t, "keys", s.Len(), 0)
	must(t, serverside.DB.SwapWith(s, originAt(8), 0, 1))
	o, _ = serverside.DB.Origin(s)
	equal(t, "origin", o, originAt(8))
	must(t, serverside.DB.SetReplicaOf(s, nil, false))
	if _, known := serverside.DB.Origin(s); known {
		t.Error("a master has an origin")
	}
	for began := time.Now(); s.Len() > 1; time.Sleep(10 * time.Millisecond) { // the list is left
		if time.Since(began) > time.Minute {
			t.Fatalf("%d keys are left", s.Len())
		}
	}
	must(t, s.String("a").Put([]byte("3")))
}

// TestInstallIsNoticed: watches of keys that are there before or after it have changed, and waiters get what there is.
func TestInstallIsNoticed(t *testing.T) {
	s := openMemory(t)
	must(t, s.String("old").Put([]byte("1")))
	must(t, serverside.DB.SetReplicaOf(s, asReplica, true))
	watches := map[string]*db.Watch{}
	for _, key := range []string{"old", "a", "never"} {
		watches[key] = ok[*db.Watch](t)(s.Watch(key))
		defer watches[key].Close()
	}
	var whole []int
	stop := s.OnChanges(func(changes []db.Change, _ db.Ticket) {
		for _, c := range changes {
			if c.Whole {
				whole = append(whole, c.Namespace)
			}
		}
	})
	defer stop()
	must(t, load(t, s))
	must(t, serverside.DB.Install(s, nil, originAt(1)))
	for key, w := range watches {
		must(t, s.View(func(tx *db.Tx) error {
			changed, err := w.Changed(tx)
			equal(t, "a watch of "+key, changed, key != "never")
			return err
		}))
	}
	if !slices.Equal(whole, []int{0, 1}) {
		t.Errorf("replaced: %v", whole)
	}
}

// TestBackupOfReplica: it is no replica, and stands nowhere.
func TestBackupOfReplica(t *testing.T) {
	fs := vfs.NewMem()
	openIn := func(dir string) *db.Store {
		return ok[*db.Store](t)(db.Open(dir, seam.With(&db.Options{}, seam.Options{FS: fs})))
	}
	s := openIn("store")
	must(t, s.String("a").Put([]byte("1")))
	must(t, serverside.DB.SetReplicaOf(s, append(asReplica, "x"...), true))
	must(t, serverside.DB.FlushWith(s, originAt(6), 2))
	equal(t, "noted", string(serverside.DB.ReplicaOf(s)), string(asReplica)+"x")
	ok[bitcask.BackupResult](t)(s.Backup(context.Background(), "backup"))
	must(t, s.Close())
	b := openIn("backup")
	must(t, b.String("a").Put([]byte("2")))
	if o, known := serverside.DB.Origin(b); known || serverside.DB.ReplicaOf(b) != nil {
		t.Errorf("the backup stands at %+v", o)
	}
	must(t, b.Close())
	s = openIn("store")
	equal(t, "a replica that was opened again", errors.Is(s.String("a").Put([]byte("2")), db.ErrReplica), true)
	must(t, s.Close())
}

// TestLoadingOnAFullDisk: what was loaded when the disk was full goes all the same, and what the master sends can be written
// again.
func TestLoadingOnAFullDisk(t *testing.T) {
	mem := vfs.NewMem()
	mem.SetLimit(16<<20, 4096)
	s := ok[*db.Store](t)(db.Open("store", seam.With(&db.Options{SegmentSize: 1 << 20}, seam.Options{FS: mem})))
	must(t, s.String("old").Put([]byte("1")))
	must(t, serverside.DB.SetReplicaOf(s, asReplica, true))
	before := holds(t, s)
	must(t, serverside.DB.BeginLoading(s))
	value := make([]byte, 64<<10)
	var err error
	for i := 0; err == nil; i++ {
		key := fmt.Sprint(i)
		err = s.UpdateKeys([]string{key}, func(tx *db.Tx) error {
			serverside.DB.Apply(tx)
			shadow, err := serverside.DB.Shadow(tx, 0)
			if err != nil {
				return err
			}
			return shadow.String(key).Put(value)
		})
	}
	if !errors.Is(err, db.ErrNoSpace) {
		t.Fatal(err)
	}
	equal(t, "while the disk is full", holds(t, s), before)
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) { // the link tries again, and merges take what was emptied
		err = serverside.DB.EndLoading(s)
		if err == nil {
			err = serverside.DB.FlushWith(s, originAt(1), 5)
		}
		if err == nil {
			break
		}
		if !errors.Is(err, db.ErrNoSpace) || time.Since(began) > time.Minute {
			t.Fatalf("the disk stays full: %v", err)
		}
	}
	equal(t, "keys", s.Len(), 1)
	must(t, s.Close())
}

// TestHoldWrites: while writes are held they are refused as those to a replica are, and nothing else is.
func TestHoldWrites(t *testing.T) {
	s := ok[*db.Store](t)(db.Open("store", seam.With(&db.Options{NoMerge: true}, seam.Options{FS: vfs.NewMem()})))
	defer s.Close()
	must(t, s.String("k").Put([]byte("v")))
	must(t, serverside.DB.HoldWrites(s, true))
	if err := s.String("k").Put([]byte("w")); !errors.Is(err, db.ErrReplica) {
		t.Errorf("Put: %v", err)
	}
	if err := s.FlushAll(); !errors.Is(err, db.ErrReplica) {
		t.Errorf("FlushAll: %v", err)
	}
	if value, err := s.String("k").Get(); err != nil || string(value) != "v" {
		t.Errorf("Get: %q, %v", value, err)
	}
	must(t, serverside.DB.HoldWrites(s, false))
	must(t, s.String("k").Put([]byte("w")))
}
