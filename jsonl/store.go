package jsonl

import (
	"fmt"
	"time"

	"github.com/stavedb/stave/db"
)

// store makes the key what the line says, whatever it was before. A deadline that
// has passed, and a collection of nothing, mean no key.
func (l *keyLine) store(tx *db.Tx, now int64) error {
	tx, err := l.clear(tx)
	if err != nil || l.expired(now) {
		return err
	}
	if err := l.storeElements(tx, l.elements); err != nil {
		return err
	}
	return l.storeDeadlines(tx)
}

// clear deletes the key and returns the transaction in the key's namespace.
func (l *keyLine) clear(tx *db.Tx) (*db.Tx, error) {
	tx, err := tx.Use(l.namespace)
	if err != nil {
		return nil, fmt.Errorf("db %d: %w", l.namespace, err)
	}
	_, err = tx.Key(l.key).Delete()
	return tx, err
}

// storeElements writes a string, or adds elements to a collection.
func (l *keyLine) storeElements(tx *db.Tx, elements []element) error {
	if l.kind == "string" {
		return tx.String(l.key).Put([]byte(l.value))
	}
	if len(elements) == 0 {
		return nil
	}
	var err error
	switch l.kind {
	case "hash":
		fields := make([]db.Field, len(elements))
		for i, e := range elements {
			fields[i] = db.Field{Name: e.name, Value: []byte(e.value)}
		}
		_, err = tx.Hash(l.key).PutAll(fields...)
	case "list":
		values := make([][]byte, len(elements))
		for i, e := range elements {
			values[i] = []byte(e.value)
		}
		_, err = tx.List(l.key).PushBack(values...)
	case "set":
		names := make([]string, len(elements))
		for i, e := range elements {
			names[i] = e.name
		}
		_, err = tx.Set(l.key).Add(names...)
	case "zset":
		members := make([]db.Scored, len(elements))
		for i, e := range elements {
			members[i] = db.Scored{Member: e.name, Score: e.score}
		}
		_, err = tx.SortedSet(l.key).Add(members...)
	}
	return err
}

// storeDeadlines gives the key and its fields their deadlines. Fields whose time
// has come are deleted again.
func (l *keyLine) storeDeadlines(tx *db.Tx) error {
	for _, f := range l.deadlines {
		if _, err := tx.Hash(l.key).ExpireFieldsAt(time.UnixMilli(f.expireAt), []string{f.field}); err != nil {
			return err
		}
	}
	if l.expireAt == 0 || l.kind != "string" && len(l.elements) == 0 {
		return nil
	}
	_, err := tx.Key(l.key).ExpireAt(time.UnixMilli(l.expireAt))
	return err
}

// pieces cuts elements into runs of about size bytes; there is at least one.
func pieces(elements []element, size int) [][]element {
	var cut [][]element
	start, bytes := 0, 0
	for i, e := range elements {
		bytes += len(e.name) + len(e.value) + 16
		if bytes >= size {
			cut = append(cut, elements[start:i+1])
			start, bytes = i+1, 0
		}
	}
	if start < len(elements) || len(cut) == 0 {
		cut = append(cut, elements[start:])
	}
	return cut
}
