package digest

import (
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/stavedb/stave/db"
)

// Digest is Redis's digest of a value, or of all keys: equal data have equal digests, in whatever order they are
// kept, and on whichever of the two servers. Groups of streams are left out, as in Redis. It proves nothing against somebody who chooses the data.
type Digest [sha1.Size]byte

// xor adds what has no order.
func (d *Digest) xor(b []byte) {
	sum := sha1.Sum(b)
	for i := range d {
		d[i] ^= sum[i]
	}
}

// mix adds what has an order.
func (d *Digest) mix(b []byte) {
	d.xor(b)
	*d = sha1.Sum(d[:])
}

// AddKey adds the value at a key, and that it has a deadline if it has. A key that does not exist adds nothing.
func (d *Digest) AddKey(tx *db.Tx, key string) error {
	typ, err := tx.Key(key).Type()
	if err != nil || typ == db.TypeNone {
		return err
	}
	numbers := map[db.Type]uint32{db.TypeString: 0, db.TypeList: 1, db.TypeSet: 2, db.TypeSortedSet: 3, db.TypeHash: 4, db.TypeStream: 6}
	d.mix(binary.BigEndian.AppendUint32(nil, numbers[typ]))
	pair := func(a, b []byte) bool {
		var one Digest
		one.mix(a)
		one.mix(b)
		d.xor(one[:])
		return true
	}
	switch typ {
	case db.TypeString:
		var value []byte
		if value, err = tx.String(key).Get(); err == nil {
			d.mix(value)
		}
	case db.TypeList:
		err = tx.List(key).Visit(0, -1, nil, func(value []byte) bool { d.mix(value); return true })
	case db.TypeSet:
		err = tx.Set(key).Visit(nil, func(member []byte) bool { d.xor(member); return true })
	case db.TypeSortedSet:
		err = tx.SortedSet(key).Visit(db.RankRange{Stop: -1}, nil, func(member []byte, score float64) bool {
			text := fmt.Sprintf("%.17g", score)
			if math.IsInf(score, 0) {
				text = strings.ToLower(strings.TrimPrefix(text, "+")) // as C has it
			}
			return pair(member, []byte(text))
		})
	case db.TypeHash:
		err = tx.Hash(key).Visit(nil, pair)
	case db.TypeStream:
		err = tx.Stream(key).Visit(db.StreamID{}, db.MaxStreamID, func(id db.StreamID, fields [][]byte) bool {
			d.mix(fmt.Appendf(nil, "%d.%d", id.Ms, id.Seq))
			for _, b := range fields {
				d.mix(b)
			}
			return true
		})
	}
	if err != nil {
		return err
	}
	deadline, err := tx.Key(key).Deadline()
	if err == nil && !deadline.IsZero() {
		d.xor([]byte("!!expire!!"))
	}
	return err
}

// AddStore adds all keys of all databases, at one moment. The whole store is locked meanwhile.
func (d *Digest) AddStore(store *db.Store) error {
	return store.View(func(tx *db.Tx) error {
		for n := range store.Namespaces() {
			space, err := tx.Use(n)
			if err != nil {
				return err
			}
			begun := false
			for info, err := range space.Keyspace().All() {
				if err != nil {
					return err
				}
				if !begun {
					begun = true
					d.mix(binary.BigEndian.AppendUint32(nil, uint32(n)))
				}
				var one Digest
				one.mix([]byte(info.Key))
				if err := one.AddKey(space, info.Key); err != nil {
					return err
				}
				d.xor(one[:])
			}
		}
		return nil
	})
}
