package bitcask

import "github.com/stavedb/stave/keydir"

// Usage is what a key takes, in bytes.
type Usage struct {
	Disk     int64 // its records in the log; sizes are known within an eighth
	Memory   int64 // its part of the keydir
	Elements int   // fields, members or entries; 0 for a string
}

// Usage estimates what a key takes, with its deadlines. Of a collection it looks at so many records, all if samples is
// 0, and takes the rest for as long as these on average. ok is false if the key holds nothing. O(samples).
func (t *Tx) Usage(ns int, key string, samples int) (u Usage, ok bool, err error) {
	return t.usage(ns, key, samples, nil)
}

// UsageByPlace is Usage by all records. It calls place with the segment and the length of each, a deadline's included.
// place must not use the store.
func (t *Tx) UsageByPlace(ns int, key string, place func(segment uint32, bytes int64)) (u Usage, ok bool, err error) {
	return t.usage(ns, key, 0, place)
}

func (t *Tx) usage(ns int, key string, samples int, place func(segment uint32, bytes int64)) (u Usage, ok bool, err error) {
	slot, coll, err := t.Find(ns, key)
	if err != nil || slot.Type == keydir.None {
		return u, false, err
	}
	h, err := t.hash(key)
	if err != nil {
		return u, false, err
	}
	sum := usageSum{samples: samples, place: place}
	sp := t.s.spaces.Of(ns)
	sum.Memory = keydir.SlotBytes
	if coll.Valid() {
		sum.collection(coll)
		if slot.Type.Public() != keydir.String {
			sum.Elements = coll.Len()
		}
	} else {
		sum.record(slot.Loc)
	}
	if deadline, timed, err := t.deadlineSlot(sp, h, key); err != nil {
		return u, false, err
	} else if timed {
		sum.record(deadline.Loc)
		sum.Memory += keydir.SlotBytes
	}
	for _, typ := range keydir.Alongside {
		if beside, ok := sp.Dir.FindAlongside(h, key, typ); ok {
			sum.Memory += keydir.SlotBytes
			sum.collection(beside)
		}
	}
	return sum.Usage, true, nil
}

// A usageSum adds up the records of a key.
type usageSum struct {
	Usage
	samples int
	place   func(segment uint32, bytes int64) // nil: nobody asks
}

// record adds one record. A location of a transaction that has not been written yet is in no segment.
func (u *usageSum) record(loc keydir.Loc) {
	u.Disk += int64(loc.Size())
	if u.place != nil && loc != 0 && !loc.Pending() {
		u.place(loc.Segment(), int64(loc.Size()))
	}
}

// collection adds a collection.
func (u *usageSum) collection(coll keydir.Collection) {
	u.Memory += int64(coll.Bytes())
	u.record(coll.Meta())
	before, n := u.Disk, int64(0)
	coll.Each(func(_ []byte, loc keydir.Loc) bool {
		u.record(loc)
		n++
		return n != int64(u.samples)
	})
	if n > 0 {
		u.Disk = before + (u.Disk-before)*int64(coll.Len())/n
	}
}
