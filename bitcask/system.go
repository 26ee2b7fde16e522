package bitcask

import (
	"fmt"
	"slices"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/bitcask/internal/reserve"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/bitcask/internal/system"
	"github.com/stavedb/stave/keydir"
)

// System records are what the store notes of itself, by name, alongside the keys and untouched by flushes: stave:{name}
// -> value. The newest record of each name counts; an empty value says that there is none. They are few and small, so
// their values are kept in RAM. Merges copy them all, whatever their names: a newer version may have written them.

// System returns the value of a system record; nil if there is none.
func (s *Store) System(name string) []byte {
	r, _ := s.system.Get(name)
	if len(r.Value) == 0 {
		return nil
	}
	return slices.Clone(r.Value)
}

// checkSystem refuses, before anything is changed, a store with a system record that only a newer version can read: the
// store's own, or that of package db, which reads it when Open is done.
func (s *Store) checkSystem() error {
	if clock := s.System(system.ClockName); clock != nil && len(clock) != system.ClockSize {
		return fmt.Errorf("system record %q: %w", system.ClockName, ErrVersion)
	}
	for name, r := range s.system.Copy() {
		if _, _, ok := system.LibraryOf(name); ok && r.Value[0] != system.LibraryVersion {
			return fmt.Errorf("system record %q: %w", name, ErrVersion)
		}
	}
	_, err := readEpoch(&s.system)
	return err
}

// PutSystem sets a system record, in the same commit as all else that the transaction does; an empty value deletes it.
// System returns it after the commit. Until End no other transaction puts one. Errors: ErrTooLarge for a name or value
// over its limit, or one record too many.
func (t *Tx) PutSystem(name string, value []byte) error {
	switch {
	case !t.open:
		return ErrTxDone
	case !t.locks.write:
		return errReadTx
	case len(name) == 0 || len(name) > MaxSystemName:
		return fmt.Errorf("name of a system record of %d bytes: %w", len(name), ErrTooLarge)
	case len(value) > MaxSystemValue:
		return fmt.Errorf("system record of %d bytes: %w", len(value), ErrTooLarge)
	}
	t.materialize()
	t.call = t.here()
	if !t.system {
		t.s.system.Writing.Lock()
		t.system = true
	}
	there, others := t.systemThere(name)
	if len(value) == 0 && !there {
		return nil
	}
	if len(value) > 0 && others >= MaxSystemRecords {
		return fmt.Errorf("more than %d system records: %w", MaxSystemRecords, ErrTooLarge)
	}
	if err := t.s.reserve.With(reserve.LeaveHalf, func() error { return t.s.man.need(manifest.FeatureSystem) }); err != nil { // it may be a note: see deletes
		return t.s.log.Fail(err)
	}
	_, err := t.add(KindSystem, keydir.None, new(namespace.Space), t.s.man.Seed.Hash(name), name, "", value)
	return err
}

// systemThere reports whether the transaction sees a system record of a name, and how many others it sees.
func (t *Tx) systemThere(name string) (there bool, others int) {
	changed := map[string]bool{} // whether there is one
	for i := range t.recs.Len() {
		if r := t.recs.At(i); r.row().Home == format.HomeSystem {
			rec := t.record(r)
			changed[string(rec.Key)] = len(rec.Value) > 0
		}
	}
	sr := &t.s.system
	sr.Mu.Lock()
	defer sr.Mu.Unlock()
	for n, r := range sr.Names {
		if _, ok := changed[n]; !ok {
			changed[n] = len(r.Value) > 0
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
	rec := t.record(r)
	dead, _ := t.s.system.Put(string(rec.Key), system.Record{Value: slices.Clone(rec.Value), Seq: seq, Loc: loc})
	t.s.dead.add(dead)
	addLive(sg, loc)
}

// replaySystem notes a system record of the log, which the INDEX may have had already.
func (s *opener) replaySystem(sg *segment.Segment, e *format.Entry) {
	s.recovery.Replayed++
	loc := keydir.MakeLoc(sg.ID, e.At, e.Size)
	if dead, ok := s.system.Put(string(e.Key), system.Record{Value: slices.Clone(e.Inline), Seq: e.Seq, Loc: loc}); ok {
		s.dead.add(dead)
		addLive(sg, loc)
	}
}
