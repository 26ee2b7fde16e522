package bitcask_test

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

// lackSegment holds a dozen of the puts of lackStore.
const lackSegment = 1000

type lackStore struct {
	t     *testing.T
	mem   *vfs.Mem
	fault *vfstest.Fault
	*bitcask.Store
	acked map[string]string
	puts  int
}

func newLackStore(t *testing.T) *lackStore {
	mem := vfs.NewMem()
	l := &lackStore{t: t, mem: mem, fault: vfstest.NewFault(mem), acked: map[string]string{}}
	l.Store = open(t, "d", seam.With(&bitcask.Options{SegmentSize: lackSegment}, seam.Options{FS: l.fault, NoMapping: true, NoHints: true}))
	return l
}

// tryPut puts the next key.
func (l *lackStore) tryPut() error {
	key, value := fmt.Sprintf("key %04d", l.puts), fmt.Sprintf("value %d %s", l.puts, strings.Repeat("v", 40))
	l.puts++
	err := l.Put(key, []byte(value))
	if err == nil {
		l.acked[key] = value
	}
	return err
}

func (l *lackStore) mustPut(n int) {
	l.t.Helper()
	for range n {
		if err := l.tryPut(); err != nil {
			l.t.Fatal(err)
		}
	}
}

// putUntil puts until that fails, with that cause and with the store whole.
func (l *lackStore) putUntil(cause error) {
	l.t.Helper()
	for range 100 {
		err := l.tryPut()
		if err == nil {
			continue
		}
		if !errors.Is(err, cause) || errors.Is(err, bitcask.ErrFailed) {
			l.t.Fatalf("put: %v, want %v", err, cause)
		}
		return
	}
	l.t.Fatal("100 puts went well")
}

// holdsAcked checks that exactly the acknowledged writes are there.
func (l *lackStore) holdsAcked(s *bitcask.Store) {
	l.t.Helper()
	for i := range l.puts {
		key := fmt.Sprintf("key %04d", i)
		if value, ok := l.acked[key]; ok {
			want(l.t, s, key, value)
		} else {
			wantNone(l.t, s, key)
		}
	}
	check(l.t, s)
}

// reopened checks what a killed process would leave now, and what Close does.
func (l *lackStore) reopened() {
	l.t.Helper()
	l.holdsAcked(l.Store)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		killed := open(l.t, "d", seam.With(&bitcask.Options{SegmentSize: lackSegment}, seam.Options{FS: l.mem.Clone(), NoMapping: true, NoIndex: true}))
		l.holdsAcked(killed)
		r := killed.Recovery()
		if len(r.Removed) == 0 && r.TornBytes == 0 {
			break
		}
		// The next segment that is just being made is removed. Nothing is made any more in a moment.
		if r.TornBytes > 0 || time.Now().After(deadline) {
			l.t.Errorf("after a kill: %+v", r)
			break
		}
	}
	if err := l.Close(); err != nil {
		l.t.Fatal(err)
	}
	l.fault.Heal()
	again := open(l.t, "d", seam.With(&bitcask.Options{SegmentSize: lackSegment}, seam.Options{FS: l.mem, NoMapping: true}))
	l.holdsAcked(again)
	if left := again.Recovery().Removed; len(left) > 0 {
		l.t.Errorf("stray files: %v", left)
	}
}

// lacks are the ways in which a next segment cannot be had for now.
var lacks = []struct {
	name string
	rule vfstest.Rule
}{
	{"no space for the file", vfstest.Rule{Ops: []vfstest.Op{vfstest.OpCreate}, Path: "*.data", Err: syscall.ENOSPC}},
	{"no space for the header", vfstest.Rule{Ops: []vfstest.Op{vfstest.OpWrite}, Path: "00000000[2-9].data", Err: syscall.ENOSPC, Partial: 9}},
	{"over quota when synced", vfstest.Rule{Ops: []vfstest.Op{vfstest.OpSync}, Path: "00000000[2-9].data", Err: syscall.EDQUOT}},
	{"no descriptor for the file", vfstest.Rule{Ops: []vfstest.Op{vfstest.OpCreate}, Path: "*.data", Err: syscall.EMFILE}},
	{"no descriptor for the directory", vfstest.Rule{Ops: []vfstest.Op{vfstest.OpSyncDir}, Err: syscall.ENFILE}},
}

// TestNoSegmentAhead: a next segment that could not be made ahead of time, once, is made when it is
// needed. No call fails.
func TestNoSegmentAhead(t *testing.T) {
	for _, lack := range lacks {
		t.Run(lack.name, func(t *testing.T) {
			l := newLackStore(t)
			l.mustPut(2)
			l.fault.Inject(lack.rule)
			// Beyond half, and then beyond the end. Where the goroutine of rotations is
			// slow, the failure meets a put, which says so.
			for range 40 {
				if err := l.tryPut(); err != nil && !errors.Is(err, lack.rule.Err) {
					t.Fatal(err)
				}
			}
			if l.fault.Failed() != 1 {
				t.Fatalf("%d operations failed, want 1", l.fault.Failed())
			}
			if lost := l.puts - len(l.acked); lost > 1 {
				t.Errorf("%d puts failed for one lack", lost)
			}
			l.reopened()
		})
	}
}

// TestNoNextSegment: as long as there is no next segment, what does not fit the
// active one is refused, and everything else goes on; afterwards all does.
func TestNoNextSegment(t *testing.T) {
	for _, lack := range lacks {
		for _, healed := range []bool{false, true} {
			t.Run(fmt.Sprint(lack.name, ", healed ", healed), func(t *testing.T) {
				l := newLackStore(t)
				l.mustPut(2)
				lack.rule.Sticky = true
				l.fault.Inject(lack.rule)
				l.putUntil(lack.rule.Err)
				if err := l.Err(); err != nil {
					t.Fatalf("the store has failed: %v", err)
				}
				// A tombstone is shorter than a put: there is room for some.
				if ok, err := l.Delete("key 0000"); err != nil || !ok {
					t.Fatalf("delete: %v, %v", ok, err)
				}
				delete(l.acked, "key 0000")
				if err := l.Rotate(); !errors.Is(err, lack.rule.Err) {
					t.Errorf("Rotate: %v", err)
				}
				l.putUntil(lack.rule.Err)
				l.holdsAcked(l.Store)
				if err := l.Sync(); err != nil {
					t.Errorf("Sync: %v", err)
				}
				if healed {
					l.fault.Heal()
					l.mustPut(50)
				}
				l.reopened()
			})
		}
	}
}

// TestNoSpaceForFooter: a full segment that cannot be sealed for lack of space is sealed later.
// Until then writers fill the segment after it, no more.
func TestNoSpaceForFooter(t *testing.T) {
	for _, healed := range []bool{false, true} {
		t.Run(fmt.Sprint("healed ", healed), func(t *testing.T) {
			l := newLackStore(t)
			l.mustPut(2)
			full := false
			l.fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpSync}, Path: "000000001.data", Do: func(vfstest.Event) {
				full = true
				l.fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpWrite}, Path: "000000001.data", Err: syscall.ENOSPC, Partial: 20, Sticky: true})
			}})
			l.putUntil(syscall.ENOSPC)
			if err := l.Err(); err != nil || !full {
				t.Fatalf("the store has failed: %v; %v", err, full)
			}
			if err := l.Rotate(); !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("Rotate: %v", err)
			}
			if err := l.Sync(); err != nil {
				t.Errorf("Sync: %v", err)
			}
			if healed {
				l.fault.Heal()
				l.mustPut(50)
				if err := l.Rotate(); err != nil {
					t.Fatal(err)
				}
			}
			l.reopened()
		})
	}
}
