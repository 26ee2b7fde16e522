package bitcask_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/bitcask/repair"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/crash"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

// tornEnd is a store that was killed, as files, and its content.
type tornEnd struct {
	*testing.T
	state crash.State
	boot  vfs.BootID
	holds map[string]string
}

// killed makes a store with so many keys and takes its files while it is open.
func killed(t *testing.T, mode bitcask.SyncMode, keys int, after func(s *bitcask.Store)) *tornEnd {
	t.Helper()
	x := &tornEnd{T: t, holds: map[string]string{}}
	mem := vfs.NewMem()
	s, err := bitcask.Open("d", seam.With(&bitcask.Options{Sync: mode, SegmentSize: 1 << 20}, seam.Options{FS: mem, NoIndex: true, NoHints: true}))
	x.must(err)
	for i := range keys {
		key := fmt.Sprintf("key%d", i)
		x.holds[key] = "value of " + key
		x.must(s.Put(key, []byte(x.holds[key])))
	}
	if after != nil {
		after(s)
	}
	x.state, err = crash.ReadState(mem, "d")
	x.must(err)
	x.boot = vfs.BootOf(mem, "d")
	x.must(s.Close())
	return x
}

func (x *tornEnd) must(err error) {
	x.Helper()
	if err != nil {
		x.Fatal(err)
	}
}

// mem is the files with one changed, in the life of the kernel in which they were written, or in a later one.
func (x *tornEnd) mem(file string, b []byte, sameBoot bool) (*vfs.Mem, crash.State) {
	state := maps.Clone(x.state)
	state[file] = b
	mem, err := state.Mem("d")
	x.must(err)
	if sameBoot {
		mem.SetBoot(x.boot)
	}
	return mem, state
}

// refused wants a writer to be refused for damage to a file, and every file to be as it was.
func (x *tornEnd) refused(what string, mem *vfs.Mem, state crash.State, file string) {
	x.Helper()
	s, err := bitcask.Open("d", seam.With(&bitcask.Options{}, seam.Options{FS: mem}))
	if err == nil {
		x.Errorf("%s: opened, with %d keys: %+v", what, s.Len(0), s.Recovery())
		x.must(s.Close())
		return
	}
	if c, ok := errors.AsType[*bitcask.CorruptError](err); !ok || c.File != file {
		x.Errorf("%s: %v", what, err)
	}
	now, err := crash.ReadState(mem, "d")
	x.must(err)
	for name := range now {
		if name != "LOCK" && string(now[name]) != string(state[name]) {
			x.Errorf("%s: a refused open has changed %s from %d to %d bytes", what, name, len(state[name]), len(now[name]))
		}
	}
}

// salvaged wants a repair to bring all keys back but so many, and to say so.
func (x *tornEnd) salvaged(what string, mem *vfs.Mem, lost int) repair.Result {
	x.Helper()
	result, err := repair.Salvage(context.Background(), "d", "out", seam.With(&bitcask.Options{}, seam.Options{FS: mem}))
	if err != nil {
		x.Errorf("%s: salvage: %v", what, err)
		return result
	}
	s, err := bitcask.Open("out", seam.With(&bitcask.Options{}, seam.Options{FS: mem}))
	x.must(err)
	missing := 0
	for key, want := range x.holds {
		got, err := s.Get(key)
		if errors.Is(err, bitcask.ErrNotFound) {
			missing++
		} else if err != nil || string(got) != want {
			x.Errorf("%s: %s is %q, %v", what, key, got, err)
		}
	}
	if missing != lost || lost > 0 && len(result.Lost) == 0 {
		x.Errorf("%s: %d keys missing, want %d; %+v", what, missing, lost, result)
	}
	x.must(s.Close())
	return result
}

// readDamaged wants a store to be readable with ReadDamaged: all keys but so many, and these to give
// errors.
func (x *tornEnd) readDamaged(what string, mem *vfs.Mem, bad int) {
	x.Helper()
	s, err := bitcask.Open("d", seam.With(&bitcask.Options{ReadDamaged: true}, seam.Options{FS: mem}))
	if err != nil {
		x.Errorf("%s: opened for what is left: %v", what, err)
		return
	}
	wrong := 0
	for key, want := range x.holds {
		got, err := s.Get(key)
		if _, corrupt := errors.AsType[*bitcask.CorruptError](err); corrupt {
			wrong++
		} else if err != nil || string(got) != want {
			x.Errorf("%s: %s is %q, %v", what, key, got, err)
		}
	}
	if wrong != bad {
		x.Errorf("%s: %d keys give errors, want %d", what, wrong, bad)
	}
	x.must(s.Close())
}

// Each bit of the manifest's last edit, of stores that were killed: the segment that it adds, and the merge that it
// publishes, are missed. A refused open has truncated nothing, so ReadDamaged and a repair work as well after it.
func TestLastEditOfTheManifest(t *testing.T) {
	merged := func(s *bitcask.Store) {
		for range 2 {
			if err := errors.Join(s.Put("more", []byte("text")), s.Rotate()); err != nil {
				t.Fatal(err)
			}
		}
		var ids []uint32
		for _, sg := range s.Segments() {
			if sg.Sealed {
				ids = append(ids, sg.ID)
			}
		}
		if _, err := s.Rewrite(context.Background(), ids, bitcask.RewriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for name, after := range map[string]func(*bitcask.Store){"add": nil, "swap": merged} {
		t.Run(name, func(t *testing.T) {
			x := killed(t, bitcask.SyncAlways, 30, after)
			man := x.state["MANIFEST"]
			last := lastEdit(man)
			for at := last; at < len(man); at++ {
				for bit := range 8 {
					for _, sameBoot := range []bool{true, false} {
						b := slices.Clone(man)
						b[at] ^= 1 << bit
						what := fmt.Sprintf("byte %d of %d, bit %d, same boot %v", at, len(man), bit, sameBoot)
						mem, state := x.mem("MANIFEST", b, sameBoot)
						if s, err := bitcask.Open("d", seam.With(&bitcask.Options{ReadOnly: true}, seam.Options{FS: mem})); err == nil {
							// Only an edit that no one misses may be taken for torn.
							if s.Len(0) < len(x.holds) {
								t.Errorf("%s: opened, with %d keys", what, s.Len(0))
							}
							x.must(s.Close())
							continue
						}
						x.refused(what, mem, state, "MANIFEST")
						x.readDamaged(what, mem, 0)
						x.salvaged(what, mem, 0)
					}
				}
			}
			// More than a bit: a repair takes the segments that the manifest has lost.
			for _, sameBoot := range []bool{true, false} {
				b := slices.Clone(man)
				copy(b[last:], strings.Repeat("\xa5", len(b)-last))
				mem, state := x.mem("MANIFEST", b, sameBoot)
				x.refused("overwritten", mem, state, "MANIFEST")
				if r := x.salvaged("overwritten", mem, 0); !r.NoManifest {
					t.Errorf("overwritten: %+v", r)
				}
			}
		})
	}
}

// lastEdit is the offset of the last edit of a manifest.
func lastEdit(man []byte) int {
	const header, head = 52, 9
	at := header
	for next := at; next < len(man); {
		at = next
		next += head + int(man[at+4]) + int(man[at+5])<<8
	}
	return at
}

// One flipped bit in any byte of the log of a killed store is detected, in every sync mode, however little of it is
// known to have been synced, and a repair has every other key.
func TestFlipInAKilledLog(t *testing.T) {
	for _, mode := range []bitcask.SyncMode{bitcask.SyncAlways, bitcask.SyncInterval, bitcask.SyncNone} {
		t.Run(mode.String(), func(t *testing.T) {
			const keys = 200
			x := killed(t, mode, keys, nil)
			const file = "000000001.data"
			log := x.state[file]
			end := len(frames(log))
			step := 1 + end/400
			for at := 40; at < end; at += step {
				for _, sameBoot := range []bool{true, false} {
					b := slices.Clone(log)
					b[at] ^= 1 << (at % 8)
					what := fmt.Sprintf("byte %d of %d, same boot %v", at, end, sameBoot)
					mem, state := x.mem(file, b, sameBoot)
					x.refused(what, mem, state, file)
					if at%7 == 0 {
						x.readDamaged(what, mem, 1)
						x.salvaged(what, mem, 1)
					}
				}
			}
		})
	}
}

// An idle store notes how far its log reaches, in every sync mode: from then on no damage to it, of however many bytes,
// is taken for a torn tail, though the power was cut.
func TestIdleStoresAreMarked(t *testing.T) {
	for _, mode := range []bitcask.SyncMode{bitcask.SyncAlways, bitcask.SyncInterval, bitcask.SyncNone} {
		t.Run(mode.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := killed(t, mode, 50, func(s *bitcask.Store) {
					time.Sleep(2*time.Second + time.Millisecond)
				})
				const file = "000000001.data"
				log := x.state[file]
				for at := 40; at < len(frames(log)); at += 10 {
					b := slices.Clone(log)
					copy(b[at:], "some other bytes")
					mem, state := x.mem(file, b, false)
					x.refused(fmt.Sprintf("overwritten at %d of %d", at, len(log)), mem, state, file)
					mem, state = x.mem(file, log[:at:at], false)
					x.refused(fmt.Sprintf("cut at %d of %d", at, len(log)), mem, state, file)
				}
				writes := len(x.state["MANIFEST"])
				again := killed(t, mode, 50, func(s *bitcask.Store) { time.Sleep(time.Hour) })
				if n := len(again.state["MANIFEST"]); n != writes {
					t.Errorf("an hour of nothing took %d bytes of the manifest, two seconds %d", n, writes)
				}
			})
		})
	}
}

// While a segment waits for its sync the next one holds commits, too. A bit in the older one does not take those of
// both away.
func TestFlipBesideARotation(t *testing.T) {
	mem := vfs.NewMem()
	fault := vfstest.NewFault(mem)
	s, err := bitcask.Open("d", seam.With(&bitcask.Options{Sync: bitcask.SyncNone, SegmentSize: 4 << 10}, seam.Options{FS: fault, NoIndex: true, NoHints: true}))
	x := &tornEnd{T: t, boot: vfs.BootOf(mem, "d"), holds: map[string]string{}}
	x.must(err)
	held, release := make(chan struct{}), make(chan struct{})
	fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpSync}, Path: "000000001.data", Do: func(vfstest.Event) { close(held); <-release }})
	put := func(key string) {
		x.holds[key] = strings.Repeat("v", 50)
		x.must(s.Put(key, []byte(x.holds[key])))
	}
	for i := 0; ; i++ {
		put(fmt.Sprintf("key%d", i))
		if s.Segments()[0].Bytes > 3<<10 && len(s.Segments()) > 1 && s.Segments()[1].Bytes > 1<<10 {
			break
		}
	}
	<-held
	x.state, err = crash.ReadState(mem, "d")
	x.must(err)
	close(release)
	x.must(s.Close())
	const older = "000000001.data"
	log := x.state[older]
	for at := 40; at < len(frames(log)); at += 7 {
		for _, sameBoot := range []bool{true, false} {
			b := slices.Clone(log)
			b[at] ^= 1 << (at % 8)
			mem, state := x.mem(older, b, sameBoot)
			x.refused(fmt.Sprintf("byte %d of %d, same boot %v", at, len(log), sameBoot), mem, state, older)
		}
		b := slices.Clone(log)
		copy(b[at:], "some other bytes")
		mem, state := x.mem(older, b[:len(log)], true)
		x.refused(fmt.Sprintf("overwritten at %d of %d", at, len(log)), mem, state, older)
	}
}
