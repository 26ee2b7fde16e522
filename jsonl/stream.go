package jsonl

import (
	"fmt"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/rdb"
)

// A stream is an object: "entries" is an array of [id, field, value, field, value ...], and the others are what it
// knows besides: the last id, the greatest deleted id, how many entries have ever been added, and its groups
// (stream_group.go).

// writeStream writes the value of a stream.
func (e *exporter) writeStream(s db.Stream) error {
	info, err := s.Info()
	if err != nil {
		return err
	}
	e.buf = fmt.Appendf(e.buf, `,"value":{"last":"%v","deleted":"%v","added":%d,"entries":[`, info.Last, info.Deleted, info.Added)
	first := true
	visitErr := s.Visit(db.StreamID{}, db.MaxStreamID, func(id db.StreamID, fields [][]byte) bool {
		err = e.element(&first, func(dst []byte) []byte {
			dst = append(id.Append(append(dst, `["`...)), '"')
			for _, field := range fields {
				dst = appendElement(append(dst, ','), field)
			}
			return append(dst, ']')
		})
		return err == nil
	})
	if visitErr != nil {
		return visitErr
	}
	if err != nil {
		return err
	}
	e.buf = append(e.buf, ']')
	if err := e.writeGroups(s); err != nil {
		return err
	}
	e.buf = append(e.buf, '}')
	return nil
}

// readStream reads the value of a stream. What is left out follows from the entries.
func (l *line) readStream(d *decoder) error {
	s := &rdb.Stream{}
	l.Value.Stream = s
	var last, deleted db.StreamID
	err := d.object("an object as the value of a stream", func(name []byte) (err error) {
		switch string(name) {
		case "last":
			last, err = d.streamID()
		case "deleted":
			deleted, err = d.streamID()
		case "added":
			var n int64
			if n, err = d.integer("added"); err == nil && n < 0 {
				err = fmt.Errorf("added must not be %d", n)
			}
			s.Added = uint64(n)
		case "entries":
			err = d.array("an array of entries", func() error { return readEntry(d, s) })
		case "groups":
			err = d.array("an array of groups", func() error { return readGroup(d, s) })
		default:
			err = fmt.Errorf("unknown member %q of a stream (known: last, deleted, added, entries, groups)", clip(name, 40))
		}
		return err
	})
	s.Last, s.Delete = rdb.StreamID(last), rdb.StreamID(deleted)
	if n := len(s.Entries); n > 0 && s.Last.Less(s.Entries[n-1].ID) {
		s.Last = s.Entries[n-1].ID
	}
	if s.Last.Less(s.Delete) {
		s.Last = s.Delete
	}
	s.Added = max(s.Added, uint64(len(s.Entries)))
	return err
}

// readEntry consumes an entry.
func readEntry(d *decoder, s *rdb.Stream) error {
	var e rdb.StreamEntry
	var id db.StreamID
	n := 0
	err := d.array("an [id, field, value ...] array", func() (err error) {
		if n++; n == 1 {
			id, err = d.streamID()
			return err
		}
		field, err := d.bytes("a field of an entry")
		e.Fields = append(e.Fields, field)
		return err
	})
	e.ID = rdb.StreamID(id)
	before := rdb.StreamID{} // which no entry has
	if len(s.Entries) > 0 {
		before = s.Entries[len(s.Entries)-1].ID
	}
	switch {
	case err != nil:
		return err
	case n < 3 || n%2 == 0:
		return fmt.Errorf("the entry %v has no fields, or a field without a value", id)
	case !before.Less(e.ID):
		return fmt.Errorf("the entry %v is not after the one before", id)
	}
	s.Entries = append(s.Entries, e)
	return nil
}

func (d *decoder) streamID() (db.StreamID, error) {
	text, err := d.text("an id as a string")
	if err != nil {
		return db.StreamID{}, err
	}
	id, ok := db.ParseStreamID(text)
	if !ok {
		err = fmt.Errorf(`an id must be "time-number", not %q`, clip(text, 40))
	}
	return id, err
}
