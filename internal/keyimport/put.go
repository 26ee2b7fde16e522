package keyimport

import (
	"fmt"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/rdb"
	"github.com/stavedb/stave/internal/rdbgroup"
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/structures"
)

// put stores an item. The first piece of a key deletes what the key held; the last one completes it. A deadline that
// has passed, and a collection of nothing, mean no key.
func (im *Importer) put(tx *db.Tx, e *Item, now int64) error {
	if e.Library {
		return serverside.DB.PutLibrary(tx, string(e.Name), string(e.Value.Elements[0]))
	}
	tx, err := im.in(tx, e.Database)
	if err != nil {
		return err
	}
	key := string(e.Name)
	if isReplaced := e.Value.Kind == rdb.String && len(e.Value.Elements) > 0; e.First && (!isReplaced || e.expired(now)) {
		if _, err := tx.Key(key).Delete(); err != nil || e.expired(now) {
			return err
		}
	}
	if err := putValue(tx, key, e, now); err != nil || !e.Last || e.Deadline == 0 {
		return err
	}
	_, err = tx.Key(key).ExpireAt(time.UnixMilli(e.Deadline))
	return err
}

func putValue(tx *db.Tx, key string, e *Item, now int64) (err error) {
	v := &e.Value
	if v.Kind == rdb.StreamKind {
		return putStream(tx.Stream(key), e)
	}
	if len(v.Elements) == 0 {
		return nil
	}
	switch v.Kind {
	case rdb.String:
		if e.First {
			return tx.String(key).Put(v.Elements[0])
		}
		_, err = tx.String(key).Append(v.Elements[0])
	case rdb.List:
		_, err = tx.List(key).PushBack(v.Elements...)
	case rdb.Set:
		members := make([]string, len(v.Elements))
		for i, member := range v.Elements {
			members[i] = string(member)
		}
		_, err = tx.Set(key).Add(members...)
	case rdb.SortedSet:
		members := make([]db.Scored, len(v.Elements))
		for i, member := range v.Elements {
			members[i] = db.Scored{Member: string(member), Score: v.Scores[i]}
		}
		_, err = tx.SortedSet(key).Add(members...)
	case rdb.Hash:
		err = putHash(tx.Hash(key), v, now)
	default:
		err = fmt.Errorf("BUG: keyimport: a value of kind %d", v.Kind)
	}
	return err
}

// putHash stores fields, but for those whose time has come.
func putHash(h db.Hash, v *rdb.Value, now int64) error {
	fields := make([]db.Field, 0, len(v.Elements)/2)
	until := make([]int64, 0, len(v.Deadlines))
	for i := 0; i+1 < len(v.Elements); i += 2 {
		if v.Deadlines != nil {
			ms := v.Deadlines[i/2]
			if ms != 0 && ms <= now {
				continue
			}
			until = append(until, ms)
		}
		fields = append(fields, db.Field{Name: string(v.Elements[i]), Value: v.Elements[i+1]})
	}
	if len(fields) == 0 {
		return nil
	}
	if _, err := h.PutAll(fields...); err != nil {
		return err
	}
	for i, ms := range until {
		if ms == 0 {
			continue
		}
		if _, err := h.ExpireFieldsAt(time.UnixMilli(ms), []string{fields[i].Name}); err != nil {
			return err
		}
	}
	return nil
}

// putStream adds entries. The last piece knows of the stream what its entries do not say.
func putStream(s db.Stream, e *Item) error {
	v := e.Value.Stream
	for _, entry := range v.Entries {
		if _, err := s.Append(entry.Fields, structures.StreamNewID{Given: true, ID: db.StreamID(entry.ID)}, false, nil); err != nil {
			return err
		}
	}
	if !e.Last {
		return nil
	}
	last, deleted := db.StreamID(v.Last), db.StreamID(v.Delete)
	var err error
	if e.First && len(v.Entries) == 0 {
		err = s.Create(db.StreamInfo{Last: last, Deleted: deleted, Added: v.Added})
	} else {
		err = s.SetID(last, db.StreamSetID{Added: &v.Added, Deleted: &deleted})
	}
	for _, g := range v.Groups {
		if err == nil {
			err = s.RestoreGroup(rdbgroup.Decode(g))
		}
	}
	return err
}
