package db

import (
	"errors"

	"github.com/stavedb/stave/internal/rdb"
	"github.com/stavedb/stave/structures"
)

var (
	// ErrPayload is returned by Key.Restore for a payload of a newer Redis, and for one whose checksum does not fit.
	ErrPayload = rdb.ErrPayload
	// ErrBadPayload is returned by Key.Restore for a payload that holds no value, or one of a type that a store has
	// not.
	ErrBadPayload = rdb.ErrFormat
)

// Dump returns what the key holds, without its deadline, in the serialized form of Redis's DUMP, version 10
// (Redis 7.0), or 12 (Redis 7.4) for a hash whose fields have deadlines. When a consumer of a stream was active is not
// in it. It returns ErrNotFound if the key does not exist, and fails with structures.ErrTooLong above 512 MiB. O(n).
func (k Key) Dump() ([]byte, error) {
	return owned(call(k.handle, reading, k.dump))
}

func (k Key) dump(t *Tx) ([]byte, error) {
	typ, err := k.on(t).Type()
	if err != nil {
		return nil, err
	}
	var w rdb.Writer
	var noRoom error
	txn := t.txn()
	fits := func() bool {
		if noRoom == nil {
			noRoom = txn.Room(2 * w.Len())
		}
		return noRoom == nil && w.Len() <= structures.MaxString
	}
	part := func(b []byte) bool {
		w.Bytes(b)
		return fits()
	}
	start := func(kind rdb.Kind) func(int) { return func(n int) { w.Begin(kind, n) } }
	switch typ {
	case TypeNone:
		return nil, ErrNotFound
	case TypeStream:
		return k.dumpStream(txn)
	case TypeString:
		var value []byte
		if value, _, err = (structures.String{Txn: txn, Key: k.key}).Get(nil); err == nil {
			err = txn.Room(2 * len(value))
		}
		if err != nil {
			return nil, err
		}
		w.Begin(rdb.String, 0)
		w.Bytes(value)
	case TypeList:
		err = structures.List{Txn: txn, Key: k.key}.Visit(0, -1, start(rdb.List), part)
	case TypeSet:
		err = structures.Set{Txn: txn, Key: k.key}.Visit(start(rdb.Set), part)
	case TypeHash:
		err = k.dumpHash(txn, &w, part)
	case TypeSortedSet:
		all := structures.RankRange{Start: 0, Stop: -1}
		err = structures.SortedSet{Txn: txn, Key: k.key}.Visit(all, start(rdb.SortedSet), func(member []byte, score float64) bool {
			w.Bytes(member)
			w.Score(score)
			return fits()
		})
	}
	if err != nil {
		return nil, err
	}
	tooLong := !fits()
	if noRoom != nil {
		return nil, noRoom
	}
	if tooLong {
		return nil, structures.ErrTooLong
	}
	return w.Seal(), nil
}

// dumpHash writes a hash, in the form that has room for deadlines if a field has one.
func (k Key) dumpHash(txn structures.Txn, w *rdb.Writer, part func([]byte) bool) error {
	timed := false
	start := func(n int, first int64) {
		if timed = first != structures.NoDeadline; timed {
			w.BeginTimed(n, first)
		} else {
			w.Begin(rdb.Hash, n)
		}
	}
	return structures.Hash{Txn: txn, Key: k.key}.VisitTimed(start, func(name, value []byte, ms int64) bool {
		if timed && ms == structures.NoDeadline {
			ms = 0
		}
		if timed {
			w.Deadline(ms)
		}
		return part(name) && part(value)
	})
}

// Restore replaces the content of the key by that of a payload of Dump, or of DUMP of any Redis up to 7.4. TTL and
// ExpireAt give it a deadline; one that has passed leaves no key. With IfAbsent it fails with ErrExists if the key
// exists. It fails with ErrPayload or ErrBadPayload if the payload is not good, and with an error of package structures
// if a name or a value in it is too long. Nothing has changed then. O(n).
func (k Key) Restore(payload []byte, options ...WriteOption) error {
	return k.do(writing, func(t *Tx) error {
		o, err := t.fold(options)
		switch {
		case err != nil:
			return err
		case o.condition > structures.IfPresent || o.compare != nil || o.deadline == keepDeadline || o.old:
			return structures.ErrSyntax
		}
		return k.restore(t, payload, o, options)
	})
}

func (k Key) restore(t *Tx, payload []byte, o WriteOption, options []WriteOption) error {
	typ, err := k.on(t).Type()
	if err = held(o.condition.Holds(typ != TypeNone), options, err); err != nil {
		return err
	}
	value, err := rdb.Decode(payload)
	if err != nil {
		return err
	}
	if o.deadline != clearDeadline && o.n <= t.passedFor() {
		_, err := k.on(t).Delete()
		return err
	}
	m := t.captured.mark()
	quiet := structures.Key{Txn: structures.Quiet{Txn: t.txn()}, Key: k.key}
	if _, err := quiet.Delete(); err != nil {
		return err
	}
	if err := k.put(quiet.Txn, t.passedFor(), value); err != nil {
		return err
	}
	if t.captured != nil && value.Kind == rdb.StreamKind {
		if err := t.describeStream(m, k.key); err != nil { // not as payload, which may be of a newer version than replicas know
			return err
		}
	}
	if o.deadline != clearDeadline {
		if _, err := quiet.Expire(o.n, t.passedFor(), 0); err != nil {
			return err
		}
	}
	if typ != TypeNone {
		t.txn().Notify(structures.EventNew, k.key)
	}
	t.txn().Notify(structures.EventRestore, k.key)
	return nil
}

// put writes a decoded value to a key that does not exist.
func (k Key) put(txn structures.Txn, now int64, v rdb.Value) (err error) {
	switch v.Kind {
	case rdb.String:
		_, err = structures.String{Txn: txn, Key: k.key}.Set(v.Elements[0], structures.SetOptions{})
	case rdb.List:
		_, err = structures.List{Txn: txn, Key: k.key}.Push(structures.Back, v.Elements, 0)
	case rdb.Set:
		members := make([]string, len(v.Elements))
		for i, member := range v.Elements {
			members[i] = string(member)
		}
		_, err = structures.Set{Txn: txn, Key: k.key}.Add(members)
	case rdb.Hash:
		err = k.putHash(txn, now, v)
	case rdb.SortedSet:
		members := make([]Scored, len(v.Elements))
		for i, member := range v.Elements {
			members[i] = Scored{Member: string(member), Score: v.Scores[i]}
		}
		_, err = structures.SortedSet{Txn: txn, Key: k.key}.Add(members, 0)
	case rdb.StreamKind:
		err = k.putStream(txn, v.Stream)
	default:
		err = errors.New("BUG: db: a decoded value of no kind")
	}
	return err
}

// putHash writes the fields of a decoded hash, but for those whose time has come.
func (k Key) putHash(txn structures.Txn, now int64, v rdb.Value) error {
	h := structures.Hash{Txn: txn, Key: k.key}
	fields := make([]Field, 0, len(v.Elements)/2)
	until := make([]int64, 0, len(v.Deadlines))
	for i := 0; i < len(v.Elements); i += 2 {
		if v.Deadlines != nil {
			ms := v.Deadlines[i/2]
			if ms != 0 && ms <= now {
				continue
			}
			until = append(until, ms)
		}
		fields = append(fields, Field{Name: string(v.Elements[i]), Value: v.Elements[i+1]})
	}
	if _, err := h.PutAll(fields); err != nil {
		return err
	}
	for i, ms := range until {
		if ms == 0 {
			continue
		}
		if err := h.Expire(ms, now, 0, []string{fields[i].Name}, func(int, structures.FieldResult) {}); err != nil {
			return err
		}
	}
	return nil
}
