package bitcask

import "github.com/stavedb/stave/keydir"

// Usage is what a key takes, in bytes.
type Usage struct {
	Disk   int64 // its records in the log; sizes are known within an eighth
	Memory int64 // its part of the keydir
}

// Usage estimates what a key takes, with its deadlines. Of a collection it looks at
// so many records, all if samples is 0, and takes the rest for as long as these on
// average. ok is false if the key holds nothing. O(samples).
func (t *Tx) Usage(ns int, key string, samples int) (u Usage, ok bool, err error) {
	slot, coll, err := t.Find(ns, key)
	if err != nil || slot.Type == keydir.None {
		return u, false, err
	}
	h, err := t.hash(key)
	if err != nil {
		return u, false, err
	}
	sp := t.s.spaces.Of(ns)
	u.Memory = keydir.SlotBytes
	if coll.Valid() {
		u.add(coll, samples)
	} else {
		u.Disk = int64(slot.Loc.Size())
	}
	if deadline, timed, err := t.deadlineSlot(sp, h, key); err != nil {
		return u, false, err
	} else if timed {
		u.Disk += int64(deadline.Loc.Size())
		u.Memory += keydir.SlotBytes
	}
	if fields, timed := sp.Dir.FindFieldDeadlines(h, key); timed {
		u.Memory += keydir.SlotBytes
		u.add(fields, samples)
	}
	return u, true, nil
}

// add adds a collection.
func (u *Usage) add(coll keydir.Collection, samples int) {
	u.Memory += int64(coll.Bytes())
	u.Disk += int64(coll.Meta().Size())
	var sum, n int64
	coll.Each(func(_ []byte, loc keydir.Loc) bool {
		sum += int64(loc.Size())
		n++
		return n != int64(samples)
	})
	if n > 0 {
		u.Disk += sum * int64(coll.Len()) / n
	}
}
