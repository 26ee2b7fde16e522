// Package undo rolls back the changes that a transaction has made in the keydir. They are rolled back in the reverse of
// their order, with the locks of their stripes still held.
package undo

import "github.com/stavedb/stave/keydir"

// Op rolls back one change of the keydir. It also holds what the change replaced, whose bytes turn from live to dead at
// the commit.
type Op struct {
	Kind    Kind
	Had     bool
	Of      keydir.Type // the one of keydir.Alongside that the change is to; keydir.None: to the collection of the key
	OldType keydir.Type // of the slot that was replaced or deleted
	Dir     *keydir.Directory
	Hash    uint64
	New     keydir.Slot
	Key     string
	Elem    string          // of Rewrite the value
	Index   int64           // of Rewrite where that is in the buffer
	Score   uint64          // of an element of a list its sub-index
	Loc     keydir.Loc      // of the slot or element that was replaced or deleted
	Place   keydir.Place    // of an element of a hash or set
	ID      keydir.StreamID // of an entry of a stream
	Dropped *keydir.Dropped
	Trimmed *keydir.Trimmed // entries of a stream
	Removed *keydir.Removed // a range of a list
}

// old is the slot that was replaced or deleted.
func (u *Op) old() keydir.Slot { return keydir.Slot{Type: u.OldType, Loc: u.Loc} }

// listPlace is where the element of a list was, or the chunk of a string.
func (u *Op) listPlace() keydir.ListPlace { return keydir.ListPlace{Index: u.Index, Sub: u.Score} }

// Kind is the change that an Op rolls back.
type Kind uint8

const (
	Insert        Kind = iota // delete slot New
	Swap                      // put the old slot back in place of New
	DeleteSlot                // insert the old slot
	NewCollection             // drop the collection
	Drop                      // restore the dropped collection
	Put                       // put back the old location, or delete
	PutScored                 // same, with its score
	PutAt                     // same, of a list
	Delete                    // insert again
	DeleteScored              // insert again
	DeleteAt                  // insert again
	DeleteRange               // restore the elements
	PutEntry                  // put back the old location, or delete, of a stream
	DeleteEntry               // insert again
	Trim                      // restore the entries
	Meta                      // put back the old location of the meta record
	Rewrite                   // put back the old value of a record that waits for the commit
)

// Run rolls the change back, unless it is a Rewrite: that is for the owner of the buffer.
func (u *Op) Run() {
	switch u.Kind {
	case Insert:
		u.Dir.Delete(u.Hash, u.New)
		return
	case Swap:
		u.Dir.Replace(u.Hash, u.New, u.old())
		return
	case DeleteSlot:
		u.Dir.Insert(u.Hash, u.old())
		return
	case Drop:
		u.Dir.Restore(u.Hash, *u.Dropped)
		return
	}
	var coll keydir.Collection
	var ok bool
	if u.Of == keydir.None {
		coll, ok = u.Dir.FindCollection(u.Hash, u.Key)
	} else {
		coll, ok = u.Dir.FindAlongside(u.Hash, u.Key, u.Of)
	}
	if !ok {
		panic("BUG: undo of a change to a collection that is not there")
	}
	switch {
	case u.Kind == Meta:
		coll.SetMeta(u.Loc)
	case u.Kind == NewCollection:
		u.Dir.DropCollection(u.Hash, coll)
	case u.Kind == Put && u.Had:
		coll.Put(u.Elem, u.Loc)
	case u.Kind == Put:
		coll.RollbackPut(u.Elem, u.Place)
	case u.Kind == Delete:
		coll.RollbackDelete(u.Elem, u.Loc, u.Place)
	case u.Kind == PutScored && u.Had, u.Kind == DeleteScored:
		coll.PutScored(u.Elem, u.Score, u.Loc)
	case u.Kind == PutScored:
		coll.DeleteScored(u.Elem)
	case u.Kind == PutAt && u.Had, u.Kind == DeleteAt:
		coll.PutPlace(u.listPlace(), u.Loc)
	case u.Kind == PutAt:
		coll.DeletePlace(u.listPlace())
	case u.Kind == DeleteRange:
		coll.RestoreRange(*u.Removed)
	case u.Kind == PutEntry && u.Had, u.Kind == DeleteEntry:
		coll.PutEntry(u.ID, u.Loc)
	case u.Kind == PutEntry:
		coll.DeleteEntry(u.ID)
	case u.Kind == Trim:
		coll.RestoreEntries(*u.Trimmed)
	}
}
