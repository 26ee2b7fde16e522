package bitcask

import (
	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/keydir"
)

// Collisions of hashes. A slot has 61 bits of the hash of its key, and a billion keys hold a pair that agrees in them
// with a chance of one in nine. While the store is open the record decides which key a slot is about. Replaying the log
// cannot afford that: the record that a put replaces is anywhere in the log. So before the
// second of two keys of one hash is written, the manifest notes that hash, and replaying reads the records of noted
// hashes alone.

// noteCollision is called before a slot of a key that has none is inserted. If
// there is one of that hash it is another key's.
func (t *Tx) noteCollision(sp *namespace.Space, h uint64, deadline bool) error {
	for i := 0; ; i++ {
		slot, ok := sp.Dir.Find(h, i)
		if !ok {
			return nil
		}
		if slot.Type != keydir.FieldDeadlines && slot.Type != keydir.StreamGroups && (slot.Type == keydir.Deadline) == deadline { // collections prove their keys
			if err := t.s.man.recordCollision(h); err != nil {
				return t.s.log.Fail(err)
			}
			return nil
		}
	}
}
