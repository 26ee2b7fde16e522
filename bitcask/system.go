package bitcask

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/keydir"
)

// System records are what the store notes of itself, by name, beside the keys
// and untouched by flushes: stave:{name} -> value. The newest record of each
// name counts; an empty value says that there is none. They are few and small,
// so their values are kept in RAM. Merges copy them all, whatever their names:
// a newer version may have written them.

// systemRecord is the newest record of a name.
type systemRecord struct {
	value []byte // empty: deleted, and the record hides older ones
	seq   uint64
	loc   keydir.Loc
}

// systemRecords owns the system records.
type systemRecords struct {
	// writing is held by a transaction from its first PutSystem to its End, so
	// that records become known in the order of their sequences. It is taken
	// with stripes held; under it no more are.
	writing sync.Mutex
	mu      sync.Mutex // guards names; innermost
	names   systemNames
}

// systemNames is the newest record of each name.
type systemNames map[string]systemRecord

// there is without what has been deleted.
func (n systemNames) there() systemNames {
	maps.DeleteFunc(n, func(_ string, r systemRecord) bool { return len(r.value) == 0 })
	return n
}

func (sr *systemRecords) init() { sr.names = systemNames{} }

// get is the newest record of a name.
func (sr *systemRecords) get(name string) (systemRecord, bool) {
	sr.mu.Lock()
	defer sr.mu.Unlock()
	r, ok := sr.names[name]
	return r, ok
}

// put notes a record, unless a newer one is known. It returns the location that
// has become dead.
func (sr *systemRecords) put(name string, r systemRecord) (dead keydir.Loc, ok bool) {
	sr.mu.Lock()
	defer sr.mu.Unlock()
	old := sr.names[name]
	if r.seq < old.seq {
		return 0, false
	}
	sr.names[name] = r
	return old.loc, true
}

// move changes the location of a record, if it is the old one.
func (sr *systemRecords) move(name string, old, loc keydir.Loc) bool {
	sr.mu.Lock()
	defer sr.mu.Unlock()
	r := sr.names[name]
	if r.loc != old {
		return false
	}
	r.loc = loc
	sr.names[name] = r
	return true
}

// keep reports whether a merge copies the record at loc: it is the newest of its
// name, and if that says that there is none, something older may stand in a
// segment outside the merge. outside is the lowest sequence of those (I6).
func (sr *systemRecords) keep(name string, loc keydir.Loc, seq, outside uint64, empty bool) bool {
	sr.mu.Lock()
	defer sr.mu.Unlock()
	r, ok := sr.names[name]
	switch {
	case ok && r.loc != loc && r.seq >= seq:
		return false // another one, or another copy of this one
	case !empty:
		return ok && r.loc == loc
	case seq < outside:
		delete(sr.names, name)
		return false
	}
	sr.names[name] = systemRecord{seq: seq, loc: loc}
	return true
}

// dump is all records, of which none that is in the log is missing.
func (sr *systemRecords) dump() systemNames {
	sr.writing.Lock()
	defer sr.writing.Unlock()
	sr.mu.Lock()
	defer sr.mu.Unlock()
	return maps.Clone(sr.names)
}

// System returns the value of a system record; nil if there is none.
func (s *Store) System(name string) []byte {
	r, _ := s.system.get(name)
	if len(r.value) == 0 {
		return nil
	}
	return slices.Clone(r.value)
}

// PutSystem sets a system record, in the same commit as all else that the
// transaction does; an empty value deletes it. System returns it after the
// commit. Until End no other transaction puts one. Errors: ErrTooLarge for a
// name or value over its limit, or one record too many.
func (t *Tx) PutSystem(name string, value []byte) error {
	switch {
	case !t.open:
		return ErrTxDone
	case !t.write:
		return errReadTx
	case len(name) == 0 || len(name) > MaxSystemName:
		return fmt.Errorf("name of a system record of %d bytes: %w", len(name), ErrTooLarge)
	case len(value) > MaxSystemValue:
		return fmt.Errorf("system record of %d bytes: %w", len(value), ErrTooLarge)
	}
	t.materialize()
	if !t.system {
		t.s.system.writing.Lock()
		t.system = true
	}
	there, others := t.systemThere(name)
	if len(value) == 0 && !there {
		return nil
	}
	if len(value) > 0 && others >= MaxSystemRecords {
		return fmt.Errorf("more than %d system records: %w", MaxSystemRecords, ErrTooLarge)
	}
	if err := t.s.needFeature(manifest.FeatureSystem); err != nil {
		return err
	}
	_, err := t.add(KindSystem, keydir.None, new(space), t.s.man.Seed.Hash(name), name, "", value)
	return err
}

// systemThere reports whether the transaction sees a system record of a name,
// and how many others it sees.
func (t *Tx) systemThere(name string) (there bool, others int) {
	changed := map[string]bool{} // whether there is one
	for i := range t.recs {
		if r := &t.recs[i]; r.kind == KindSystem {
			rec := r.record(t.buf)
			changed[string(rec.Key)] = len(rec.Value) > 0
		}
	}
	sr := &t.s.system
	sr.mu.Lock()
	defer sr.mu.Unlock()
	for n, r := range sr.names {
		if _, ok := changed[n]; !ok {
			changed[n] = len(r.value) > 0
		}
	}
	for n, ok := range changed {
		if ok && n != name {
			others++
		}
	}
	return changed[name], others
}

// placeSystem makes a system record known that is now in the log.
func (t *Tx) placeSystem(r *txRecord, sg *segment.Segment, loc keydir.Loc, seq uint64) {
	rec := r.record(t.buf)
	dead, _ := t.s.system.put(string(rec.Key), systemRecord{value: slices.Clone(rec.Value), seq: seq, loc: loc})
	t.s.addDead(dead)
	t.s.addLive(sg, loc)
}

// replaySystem notes a system record of the log, which the INDEX may have had
// already.
func (s *Store) replaySystem(sg *segment.Segment, e *format.Entry) {
	s.recovery.Replayed++
	loc := keydir.MakeLoc(sg.ID, e.At, e.Size)
	if dead, ok := s.system.put(string(e.Key), systemRecord{value: slices.Clone(e.Inline), seq: e.Seq, loc: loc}); ok {
		s.addDead(dead)
		s.addLive(sg, loc)
	}
}

// needFeature sets a feature bit of the manifest before it is used. A failure
// that may have left the manifest in doubt makes the store refuse writes.
func (s *Store) needFeature(f manifest.Features) error {
	s.manifestMu.Lock()
	err := s.man.Need(f)
	s.manifestMu.Unlock()
	if err != nil {
		return s.log.fail(err)
	}
	return nil
}

// sameRecord reports whether two stores know the same of a name.
func sameRecord(a, b systemRecord) bool {
	return a.seq == b.seq && a.loc == b.loc && string(a.value) == string(b.value)
}
