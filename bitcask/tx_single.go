package bitcask

import (
	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/keydir"
)

// The most common transaction puts one string and does nothing else. The keydir changes once for such a put, when it is
// in the log and has its real location, so there is nothing to roll back and nothing to move.

// singlePut is a put that is all its transaction did so far.
type singlePut struct {
	put bool
	old keydir.Slot // the slot that it replaces; of type None if the key is new
}

// materialize puts the pending location of a single put into the keydir: the transaction goes on,
// and may read its write or roll it back.
func (t *Tx) materialize() {
	if !t.single.put {
		return
	}
	r, old := t.recs.At(0), t.single.old
	t.single = singlePut{}
	now := keydir.Slot{Type: keydir.String, Loc: keydir.MakeLoc(keydir.PendingSegment, 0, r.size)}
	t.putSlot(t.spaces[r.space], r.h, old, old.Type != keydir.None, now)
}

// placeSingle gives the keydir the location of a single put, which is now in the log.
func (t *Tx) placeSingle(sg *segment.Segment, at int64) {
	r, old := t.recs.At(0), t.single.old
	now := keydir.Slot{Type: keydir.String, Loc: keydir.MakeLoc(sg.ID, uint32(at)+uint32(r.offset(t.frameStart)), r.size)}
	if old.Type == keydir.None {
		t.spaces[r.space].Dir.Insert(r.h, now)
	} else {
		t.spaces[r.space].Dir.Replace(r.h, old, now)
		t.s.dead.add(old.Loc)
	}
	addLive(sg, now.Loc)
}

// replaced is find for a put: what the key holds now. The old value does not matter, so a string's name is believed
// without its checksum, which spares reading the whole record. Everything but a plain match is left to find.
func (t *Tx) replaced(sp *namespace.Space, h uint64, key string) (keydir.Slot, keydir.Collection, error) {
	for i := 0; ; i++ {
		slot, ok := sp.Dir.Find(h, i)
		if !ok {
			return keydir.Slot{}, keydir.Collection{}, nil
		}
		if slot.Type == keydir.Deadline {
			continue
		}
		if slot.Type == keydir.String && !slot.Loc.Pending() {
			if slot.Loc == t.provedLoc && key == t.provedKey {
				return slot, keydir.Collection{}, nil
			}
			if same, err := t.named(slot.Loc, sp.ID, key); same || err != nil && !failure.IsDamage(err) {
				return slot, keydir.Collection{}, err
			}
		}
		return t.find(sp, h, key)
	}
}

// named reports whether the record at loc has the name of a string key.
func (t *Tx) named(loc keydir.Loc, ns uint32, key string) (same bool, err error) {
	sg, err := t.s.segmentOf(loc)
	if err != nil {
		return false, err
	}
	return sg.IsString(loc, ns, key, t.onDisk)
}
