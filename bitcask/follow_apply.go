package bitcask

import (
	"math"
	"slices"
	"strings"

	"github.com/stavedb/stave/bitcask/internal/followlog"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/bitcask/internal/system"
	"github.com/stavedb/stave/keydir"
)

// apply applies one commit, with its stripes locked.
func (f *follower) apply(h *format.FrameHeader, entries []format.Entry) error {
	after, err := f.applyLocked(entries)
	f.advance()
	if after != nil {
		after()
	}
	f.drain()
	return err
}

func (f *follower) applyLocked(entries []format.Entry) (after func(), err error) {
	s := f.s
	for i := range entries { // a commit is applied as a whole
		if err := followlog.Validate(f.r.Frames.Segment, &entries[i]); err != nil {
			return nil, err
		}
	}
	t := f.lock(entries)
	defer t.Recycle()
	f.followed = Followed{Sequence: f.r.Next - 1, Keys: f.followed.Keys[:0]}
	fr := f.r.Frames
	fr.Segment.Size.Store(fr.Pos) // locations lead there from now on
	for i := range entries {
		if err := f.applyOne(&entries[i], f.hashes[i]); err != nil {
			return nil, err
		}
	}
	for i := range f.followed.Keys {
		f.describe(&f.followed.Keys[i])
	}
	if f.hook.Applied != nil {
		after = f.hook.Applied(&f.followed)
	}
	// Last: who has seen the number finds all that the commit has changed.
	s.log.Follow(fr.Segment, format.Footer{Records: fr.Records, MinSeq: fr.MinSeq, MaxSeq: fr.MaxSeq}, f.r.Next)
	return after, nil
}

// lock locks the stripes of a commit, all of them if it is about namespaces. Lock-free readers of these are turned away
// until the end, so that none of them finds a part of the commit.
func (f *follower) lock(entries []format.Entry) *Tx {
	s := f.s
	t := s.newTx(true)
	f.hashes = f.hashes[:0]
	all := false
	for i := range entries {
		e := &entries[i]
		h := s.man.Seed.Hash(format.Text(e.Key))
		f.hashes = append(f.hashes, h)
		switch e.Row().Home {
		case format.HomeSystem:
		case format.HomeNamespaces:
			all = true
		default:
			t.locks.hold(keydir.StripeOf(h))
		}
	}
	if slices.Sort(t.locks.stripes); all {
		t.locks.stripes = t.locks.stripes[:0]
		t.locks.holdAll()
	}
	t.locks.acquire()
	t.open = true
	for _, i := range t.locks.stripes {
		s.stripes[i].removed.Store(math.MaxUint64)
	}
	return t
}

// applyOne applies one entry.
func (f *follower) applyOne(e *format.Entry, h uint64) error {
	s, sg := f.s, f.r.Frames.Segment
	switch e.Row().Home {
	case format.HomeSystem:
		loc := keydir.MakeLoc(sg.ID, e.At, e.Size)
		if dead, ok := s.system.Put(string(e.Key), system.Record{Value: slices.Clone(e.Inline), Seq: e.Seq, Loc: loc}); ok {
			s.dead.add(dead)
			addLive(sg, loc)
		}
		return nil
	case format.HomeNamespaces:
		return f.remap(e)
	}
	f.followed.Keys = append(f.followed.Keys, FollowedKey{Space: e.Namespace, Key: strings.Clone(format.Text(e.Key))})
	return f.a.Apply(sg, e, h)
}

// remap applies a record about namespaces. Everything is locked.
func (f *follower) remap(e *format.Entry) error {
	s, sg := f.s, f.r.Frames.Segment
	before := s.spaces.Now.Load()
	dropped, err := s.spaces.Replay(e.Inline)
	if err != nil {
		return &CorruptError{File: sg.Name, Offset: int64(e.At), Reason: "namespace map"}
	}
	for _, sp := range dropped {
		s.dead.addSpaceLater(sp)
		f.followed.Dropped = append(f.followed.Dropped, sp.ID)
		f.o.replayed(DeadlineEvent{Space: sp.ID, Dropped: true, Sequence: e.Seq})
	}
	s.spaces.Mu.Lock()
	s.dead.add(s.spaces.Record)
	s.spaces.Record = keydir.MakeLoc(sg.ID, e.At, e.Size)
	addLive(sg, s.spaces.Record)
	s.spaces.Mu.Unlock()
	f.followed.Whole = moved(before, s.spaces.Now.Load())
	return nil
}

// moved lists the namespaces whose space is another one.
func moved(before, now *namespace.Map) (list []int) {
	for ns := range max(len(before.Names), len(now.Names)) {
		if before.SpaceID(uint32(ns)) != now.SpaceID(uint32(ns)) {
			list = append(list, ns)
		}
	}
	return list
}

// describe notes what a key is now. It is locked.
func (f *follower) describe(k *FollowedKey) {
	sp := f.s.spaces.ByRecord(k.Space)
	if sp == nil {
		return
	}
	h := f.s.man.Seed.Hash(k.Key)
	if coll, ok := sp.Dir.FindAlongside(h, k.Key, keydir.FieldDeadlines); ok {
		_, score := coll.First()
		k.FirstFieldDeadline = FieldDeadlineOf(score)
	}
	if coll, ok := sp.Dir.FindCollection(h, k.Key); ok {
		k.Type = coll.Type()
	} else if _, ok := f.a.SlotOf(sp, h, keydir.String, []byte(k.Key)); ok {
		k.Type = keydir.String
	}
}
