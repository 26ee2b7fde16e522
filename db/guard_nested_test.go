package db_test

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/structures"
)

// storeUses is every method of a store, used within one of its own closures or callbacks: locks says that it would wait
// for itself, and so must fail with ErrNested; the others work.
var storeUses = map[string]struct {
	use   func(t *testing.T, s *db.Store) error
	locks bool
}{
	"View":   {func(_ *testing.T, s *db.Store) error { return s.View(func(*db.Tx) error { return nil }) }, true},
	"Update": {func(_ *testing.T, s *db.Store) error { return s.Update(func(*db.Tx) error { return nil }) }, true},
	"ViewKeys": {func(_ *testing.T, s *db.Store) error {
		return s.ViewKeys([]string{"j"}, func(*db.Tx) error { return nil })
	}, true},
	"UpdateKeys": {func(_ *testing.T, s *db.Store) error {
		return s.UpdateKeys([]string{"j"}, func(*db.Tx) error { return nil })
	}, true},
	"Begin": {func(_ *testing.T, s *db.Store) error { _, err := s.Begin(false, "j"); return err }, true},
	"TryBegin": {func(_ *testing.T, s *db.Store) error {
		_, _, err := serverside.DB.TryBegin(s, false, nil, "j")
		return err
	}, true},
	"BeginUnlessLocked": {func(_ *testing.T, s *db.Store) error {
		_, _, err := serverside.DB.BeginUnlessLocked(s, false, "j")
		return err
	}, true},
	"Await": {func(t *testing.T, s *db.Store) error {
		return s.Await(context.Background(), db.Wait{Keys: []string{"list"}, Type: db.TypeList, Do: func(*db.Tx, string) error { return nil }})
	}, true},
	"Watch":    {func(_ *testing.T, s *db.Store) error { _, err := s.Watch("j"); return err }, true},
	"Events":   {func(_ *testing.T, s *db.Store) error { _, err := s.Events(db.EventOptions{}); return err }, true},
	"Flush":    {func(_ *testing.T, s *db.Store) error { return s.Flush() }, true},
	"FlushAll": {func(_ *testing.T, s *db.Store) error { return s.FlushAll() }, true},
	"Swap":     {func(_ *testing.T, s *db.Store) error { return s.Swap(0, 1) }, true},
	"Check": {func(_ *testing.T, s *db.Store) error {
		_, err := s.Check(context.Background(), func(db.Finding) {})
		return err
	}, true},
	"CheckReplay": {func(_ *testing.T, s *db.Store) error {
		_, err := s.CheckReplay(context.Background(), func(db.Finding) {})
		return err
	}, true},
	"Merge": {func(_ *testing.T, s *db.Store) error {
		_, err := s.Merge(context.Background(), db.MergeOptions{All: true})
		return err
	}, true},
	"Close":  {func(_ *testing.T, s *db.Store) error { return s.Close() }, true},
	"Expire": {func(_ *testing.T, s *db.Store) error { _, err := s.Expire(time.Second, 1); return err }, true}, // of a key that is due

	"Backup": {func(t *testing.T, s *db.Store) error {
		_, err := s.Backup(context.Background(), filepath.Join(t.TempDir(), "backup"))
		return err
	}, false},
	"BackupSince": {func(t *testing.T, s *db.Store) error {
		_, err := s.BackupSince(context.Background(), filepath.Join(t.TempDir(), "backup"), "")
		return err
	}, false},
	"BackupTo": {func(t *testing.T, s *db.Store) error {
		_, err := s.BackupTo(context.Background(), io.Discard)
		return err
	}, false},
	"Snapshot": {func(_ *testing.T, s *db.Store) error {
		snap, err := s.Snapshot(context.Background())
		if err == nil {
			err = snap.Close()
		}
		return err
	}, true},
	"SnapshotAt": {func(_ *testing.T, s *db.Store) error {
		snap, err := serverside.DB.SnapshotAt(s, context.Background(), func() {})
		if err == nil {
			err = snap.Close()
		}
		return err
	}, true},
	"Capture": {func(_ *testing.T, s *db.Store) error {
		stop, err := serverside.DB.Capture(s, serverside.Capture{Written: func(serverside.Commit) {}})
		if err == nil {
			stop()
		}
		return err
	}, true},
	"KeepReplication": {func(_ *testing.T, s *db.Store) error {
		return serverside.DB.KeepReplication(s, func() []byte { return []byte("x") })
	}, true},
	"TakeReplication": {func(_ *testing.T, s *db.Store) error {
		_, err := serverside.DB.TakeReplication(s, func() error { return nil })
		return err
	}, true},
	"NextSequence": {func(_ *testing.T, s *db.Store) error { serverside.DB.NextSequence(s); return nil }, false},
	"IsOnDisk":     {func(_ *testing.T, s *db.Store) error { serverside.DB.IsOnDisk(s, 1); return nil }, false},
	"Sync":         {func(_ *testing.T, s *db.Store) error { return s.Sync() }, false},
	"InterruptibleKeyspace": {func(_ *testing.T, s *db.Store) error {
		_, err := serverside.DB.InterruptibleKeyspace(s, func() error { return nil }).Keys("*")
		return err
	}, true},
	"Position":    {func(_ *testing.T, s *db.Store) error { s.Position(); return nil }, false},
	"FollowState": {func(_ *testing.T, s *db.Store) error { s.FollowState(); return nil }, false},
	"WaitPosition": {func(_ *testing.T, s *db.Store) error {
		return s.WaitPosition(context.Background(), s.Position())
	}, true},
	"SyncMode":    {func(_ *testing.T, s *db.Store) error { s.SyncMode(); return nil }, false},
	"SetSync":     {func(_ *testing.T, s *db.Store) error { return s.SetSync(db.SyncAlways) }, false},
	"Durable":     {func(_ *testing.T, s *db.Store) error { s.Durable(1); return nil }, false},
	"WaitDurable": {func(_ *testing.T, s *db.Store) error { return s.WaitDurable(1) }, false},
	"OnEvents": {func(_ *testing.T, s *db.Store) error {
		s.OnEvents(structures.AllClasses, func(db.Event) {})()
		return nil
	}, false},
	"OnChanges": {func(_ *testing.T, s *db.Store) error { s.OnChanges(func([]db.Change, db.Ticket) {})(); return nil }, false},
	"OnChangesAndReads": {func(_ *testing.T, s *db.Store) error {
		serverside.DB.OnChangesAndReads(s, func([]serverside.Change, uint64) {})()
		return nil
	}, false},
	"NewWatch": {func(_ *testing.T, s *db.Store) error { s.NewWatch().Close(); return nil }, false},
	"Use":      {func(_ *testing.T, s *db.Store) error { _, err := s.Use(1); return err }, false},
	"Survey": {func(_ *testing.T, s *db.Store) error {
		_, err := s.Survey(context.Background(), db.SurveyOptions{})
		return err
	}, true},
	"Segments":       {func(_ *testing.T, s *db.Store) error { s.Segments(); return nil }, false},
	"Stats":          {func(_ *testing.T, s *db.Store) error { s.Stats(); return nil }, false},
	"Len":            {func(_ *testing.T, s *db.Store) error { s.Len(); return nil }, false},
	"Waiters":        {func(_ *testing.T, s *db.Store) error { s.Waiters("k"); return nil }, false},
	"Namespace":      {func(_ *testing.T, s *db.Store) error { s.Namespace(); return nil }, false},
	"Namespaces":     {func(_ *testing.T, s *db.Store) error { s.Namespaces(); return nil }, false},
	"Log":            {func(_ *testing.T, s *db.Store) error { s.Log(); return nil }, false},
	"Merger":         {func(_ *testing.T, s *db.Store) error { s.Merger(); return nil }, false},
	"SetExpiryCycle": {func(_ *testing.T, s *db.Store) error { serverside.DB.SetExpiryCycle(s, true); return nil }, false},
	"DiskIsShort":    {func(_ *testing.T, s *db.Store) error { serverside.DB.DiskIsShort(s); return nil }, false},
	"IsOverBound":    {func(_ *testing.T, s *db.Store) error { serverside.DB.IsOverBound(s); return nil }, false},
	"MakeRoom":       {func(_ *testing.T, s *db.Store) error { serverside.DB.MakeRoom(s, true); return nil }, false},
	"SetEvict":       {func(_ *testing.T, s *db.Store) error { return s.SetEvict(db.Evict{}) }, false},
	"Evict":          {func(_ *testing.T, s *db.Store) error { s.Evict(); return nil }, false},
	"MergeRoom":      {func(_ *testing.T, s *db.Store) error { s.MergeRoom(); return nil }, false},
	"WaitedKeys":     {func(_ *testing.T, s *db.Store) error { serverside.DB.WaitedKeys(s); return nil }, false},
	"MergeSoon":      {func(_ *testing.T, s *db.Store) error { s.MergeSoon(); return nil }, false},
	"Libraries":      {func(_ *testing.T, s *db.Store) error { _, err := serverside.DB.Libraries(s); return err }, false},
	"Origin":         {func(_ *testing.T, s *db.Store) error { serverside.DB.Origin(s); return nil }, false},
	"ReplicaOf":      {func(_ *testing.T, s *db.Store) error { serverside.DB.ReplicaOf(s); return nil }, false},
	"SetReplicaAt": {func(_ *testing.T, s *db.Store) error {
		return serverside.DB.SetReplicaAt(s, []byte{serverside.IsReplica}, func([]byte) (serverside.Origin, bool) { return serverside.Origin{}, false })
	}, true},
	"KeepOrigin": {func(_ *testing.T, s *db.Store) error { return serverside.DB.KeepOrigin(s, serverside.Origin{}) }, true},
	"Clock":      {func(_ *testing.T, s *db.Store) error { serverside.DB.Clock(s); return nil }, false},
	"PassUntil":  {func(_ *testing.T, s *db.Store) error { return serverside.DB.PassUntil(s, 1) }, true},
	"Member":     {func(_ *testing.T, s *db.Store) error { serverside.DB.Member(s); return nil }, false},
	"SetMember":  {func(_ *testing.T, s *db.Store) error { return serverside.DB.SetMember(s, nil) }, true},
	"KeepOrphans": {func(_ *testing.T, s *db.Store) error {
		_, err := serverside.DB.KeepOrphans(s, "x.resp", [][]byte{[]byte("x")})
		return err
	}, false},
	"Orphans": {func(_ *testing.T, s *db.Store) error {
		_, err := serverside.DB.Orphans(s)
		return err
	}, false},
	"SetReplicaOf":   {func(_ *testing.T, s *db.Store) error { return serverside.DB.SetReplicaOf(s, nil, false) }, true},
	"HoldWrites":     {func(_ *testing.T, s *db.Store) error { return serverside.DB.HoldWrites(s, false) }, true},
	"BeginLoading":   {func(_ *testing.T, s *db.Store) error { return serverside.DB.BeginLoading(s) }, true},
	"EndLoading":     {func(_ *testing.T, s *db.Store) error { return serverside.DB.EndLoading(s) }, true},
	"Install":        {func(_ *testing.T, s *db.Store) error { return serverside.DB.Install(s, nil, serverside.Origin{}) }, true},
	"FlushWith":      {func(_ *testing.T, s *db.Store) error { return serverside.DB.FlushWith(s, serverside.Origin{}, 5) }, true},
	"SwapWith":       {func(_ *testing.T, s *db.Store) error { return serverside.DB.SwapWith(s, serverside.Origin{}, 5, 6) }, true},
	"LibraryChanges": {func(_ *testing.T, s *db.Store) error { serverside.DB.LibraryChanges(s); return nil }, false},
}

// callbacks are the places where a user's code runs while keys are locked.
var callbacks = map[string]func(t *testing.T, s *db.Store, fn func()){
	"View":   func(t *testing.T, s *db.Store, fn func()) { must(t, s.View(func(*db.Tx) error { fn(); return nil })) },
	"Update": func(t *testing.T, s *db.Store, fn func()) { must(t, s.Update(func(*db.Tx) error { fn(); return nil })) },
	"UpdateKeys": func(t *testing.T, s *db.Store, fn func()) {
		must(t, s.UpdateKeys([]string{"k"}, func(*db.Tx) error { fn(); return nil }))
	},
	"a visit": func(t *testing.T, s *db.Store, fn func()) {
		must(t, s.Hash("hash").Visit(nil, func(_, _ []byte) bool { fn(); return false }))
	},
	"a visit of a Tx": func(t *testing.T, s *db.Store, fn func()) {
		must(t, s.View(func(tx *db.Tx) error {
			return tx.Hash("hash").Visit(nil, func(_, _ []byte) bool { fn(); return false })
		}))
	},
	"OnEvents": func(t *testing.T, s *db.Store, fn func()) {
		stop := s.OnEvents(structures.AllClasses, func(db.Event) { fn() })
		defer stop()
		must(t, s.String("string").Put([]byte("value")))
	},
	"OnCommit": func(t *testing.T, s *db.Store, fn func()) {
		must(t, s.Update(func(tx *db.Tx) error { return tx.OnCommit(func(db.Ticket) { fn() }) }))
	},
	"OnCommit of a reader": func(t *testing.T, s *db.Store, fn func()) {
		must(t, s.View(func(tx *db.Tx) error { return tx.OnCommit(func(db.Ticket) { fn() }) }))
	},
	"OnChanges": func(t *testing.T, s *db.Store, fn func()) {
		stop := s.OnChanges(func([]db.Change, db.Ticket) { fn() })
		defer stop()
		must(t, s.String("string").Put([]byte("value")))
	},
	"Await": func(t *testing.T, s *db.Store, fn func()) {
		must(t, s.Await(context.Background(), db.Wait{Keys: []string{"list"}, Type: db.TypeList, Do: func(*db.Tx, string) error { fn(); return nil }}))
	},
	"Await, served by a push": func(t *testing.T, s *db.Store, fn func()) {
		tx := ok[*db.Tx](t)(s.Begin(true, "queue"))
		tx.Enqueue(db.Wait{Keys: []string{"queue"}, Type: db.TypeList, Do: func(tx *db.Tx, key string) error {
			fn()
			_, err := tx.List(key).PopFront()
			return err
		}}, nil)
		ok[db.Ticket](t)(tx.End(nil))
		ok[int](t)(s.List("queue").PushBack([]byte("x")))
	},
}

// TestNestedUseOfEverything: within a closure or a callback of the store, each of its methods, and of its handles',
// works or fails with ErrNested. None waits for itself.
func TestNestedUseOfEverything(t *testing.T) {
	maker := reflect.TypeFor[makers]()
	for name := range methodsOf(reflect.TypeFor[*db.Store]()) {
		if _, makes := maker.MethodByName(name); makes || name == "Waiting" { // the latter is there for tests
			continue
		}
		if _, ok := storeUses[name]; !ok {
			t.Errorf("Store.%s has no row", name)
		}
	}
	for where, callback := range callbacks {
		t.Run(where, func(t *testing.T) {
			s := ok[*db.Store](t)(db.Open(t.TempDir(), &db.Options{NoMerge: true, ExpireEvery: -1}))
			t.Cleanup(func() {
				if !t.Failed() { // else it may hang
					must(t, s.Close())
				}
			})
			oneOfEach(t, s)
			ok[bool](t)(s.Key("string").Expire(time.Hour))
			must(t, s.String("due").Put([]byte("v"), db.TTL(time.Millisecond)))
			time.Sleep(2 * time.Millisecond)
			called := false
			what := ""
			run := func() {
				callback(t, s, func() {
					called = true
					for name, row := range storeUses {
						what = "Store." + name
						if err := row.use(t, s); row.locks != errors.Is(err, db.ErrNested) || !row.locks && err != nil {
							t.Errorf("%s: %v", what, err)
						}
					}
					for _, view := range []*db.Store{s, ok[*db.Store](t)(s.Use(1))} {
						for _, h := range handlesOf(view, "string") {
							what = reflect.TypeOf(h).String()
							everyMethod(t, h, func(name string, err error) {
								if !errors.Is(err, db.ErrNested) {
									t.Errorf("%s: %v", name, err)
								}
							})
						}
					}
				})
			}
			within(t, "something", run)
			if !called {
				t.Error("the callback was not called")
			}
			usable(t, what, s)
		})
	}
}
