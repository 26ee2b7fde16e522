package cli

import (
	"fmt"
	"time"

	"github.com/stavedb/stave/db"
)

// gone reports a deadline that has passed.
func (rec *record) gone(now int64) bool { return rec.expireAt != 0 && rec.expireAt <= now }

// applyRecord makes the key what the record says, whatever it was before. A
// deadline that has passed, and a collection of nothing, mean no key.
func applyRecord(tx *db.Tx, rec *record, now int64) error {
	tx, err := tx.Use(rec.db)
	if err != nil {
		return fmt.Errorf("db %d: %w", rec.db, err)
	}
	if _, err := tx.Key(rec.key).Delete(); err != nil || rec.gone(now) {
		return err
	}
	if err := applyItems(tx, rec, rec.items); err != nil {
		return err
	}
	return applyDeadline(tx, rec)
}

// applyItems writes a string, or adds elements to a collection.
func applyItems(tx *db.Tx, rec *record, items []item) error {
	if rec.kind == "string" {
		return tx.String(rec.key).Put([]byte(rec.value))
	}
	if len(items) == 0 {
		return nil
	}
	var err error
	switch rec.kind {
	case "hash":
		fields := make([]db.Field, len(items))
		for i, it := range items {
			fields[i] = db.Field{Name: it.name, Value: []byte(it.value)}
		}
		_, err = tx.Hash(rec.key).PutAll(fields...)
	case "list":
		values := make([][]byte, len(items))
		for i, it := range items {
			values[i] = []byte(it.value)
		}
		_, err = tx.List(rec.key).PushBack(values...)
	case "set":
		names := make([]string, len(items))
		for i, it := range items {
			names[i] = it.name
		}
		_, err = tx.Set(rec.key).Add(names...)
	case "zset":
		members := make([]db.Scored, len(items))
		for i, it := range items {
			members[i] = db.Scored{Member: it.name, Score: it.score}
		}
		_, err = tx.SortedSet(rec.key).Add(members...)
	}
	return err
}

// applyDeadline gives the key and its fields their deadlines. Fields whose time
// has come are deleted again.
func applyDeadline(tx *db.Tx, rec *record) error {
	for _, f := range rec.timed {
		if _, err := tx.Hash(rec.key).ExpireFieldsAt(time.UnixMilli(f.expireAt), []string{f.name}); err != nil {
			return err
		}
	}
	if rec.expireAt == 0 || rec.kind != "string" && len(rec.items) == 0 {
		return nil
	}
	_, err := tx.Key(rec.key).ExpireAt(time.UnixMilli(rec.expireAt))
	return err
}

// storeLarge stores a collection that is too large for one commit in pieces.
// An import that is killed in between leaves the key without its later
// elements and without its deadline; importing the line again replaces it.
func (im *importer) storeLarge(p pendingRecord) error {
	rec := &p.record
	pieces := pieces(rec.items, chunkBytes)
	if rec.gone(time.Now().UnixMilli()) {
		pieces = [][]item{nil}
	}
	for i, piece := range pieces {
		err := im.store.Update(func(tx *db.Tx) error {
			tx, err := tx.Use(rec.db)
			if err != nil {
				return fmt.Errorf("db %d: %w", rec.db, err)
			}
			if i == 0 {
				if _, err := tx.Key(rec.key).Delete(); err != nil {
					return err
				}
			}
			if err := applyItems(tx, rec, piece); err != nil || i < len(pieces)-1 {
				return err
			}
			return applyDeadline(tx, rec)
		})
		if err != nil {
			return im.bad(p.line, err)
		}
	}
	if len(pieces[0]) == 0 {
		im.result.Expired++
	} else {
		im.result.Keys++
	}
	return nil
}

// pieces cuts items into runs of about size bytes; there is at least one.
func pieces(items []item, size int) [][]item {
	var cut [][]item
	start, bytes := 0, 0
	for i, it := range items {
		bytes += len(it.name) + len(it.value) + 16
		if bytes >= size {
			cut = append(cut, items[start:i+1])
			start, bytes = i+1, 0
		}
	}
	if start < len(items) || len(cut) == 0 {
		cut = append(cut, items[start:])
	}
	return cut
}
