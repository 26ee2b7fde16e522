package repair

import (
	"encoding/binary"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/keydir"
)

// losses is the records that salvage could not copy and nothing newer has
// replaced so far, by key.
type losses map[string][]loss

type loss struct {
	kind format.Kind
	typ  keydir.Type
	Lost
}

func keyOf(ns uint32, key []byte) string {
	return string(binary.AppendUvarint(nil, uint64(ns))) + string(key)
}

func (l losses) add(id *format.Identity, lost Lost) {
	at := keyOf(id.Namespace, id.Key)
	l[at] = append(l[at], loss{id.Kind, id.Type, lost})
}

// replace forgets what a newer record makes of no use, and counts it.
func (l losses) replace(id *format.Identity) (n uint64) {
	if len(l) == 0 {
		return 0
	}
	at := keyOf(id.Namespace, id.Key)
	var left []loss
	for _, x := range l[at] {
		switch {
		case !x.replacedBy(id):
			left = append(left, x)
		case x.kind == format.KindElementTombstone && x.typ == keydir.Hash && id.Kind == format.KindElement:
			// The field exists again, but no record says any longer that its old deadline is gone.
			x.kind, x.typ = format.KindFieldDeadlineTombstone, keydir.FieldDeadlines
			x.Lost.Kind = x.kind.String()
			left = append(left, x)
		default:
			n++
		}
	}
	if left == nil {
		delete(l, at)
	} else {
		l[at] = left
	}
	return n
}

// replacedBy reports whether a newer record of the same key says all that the
// lost one could have said.
func (x *loss) replacedBy(id *format.Identity) bool {
	if x.typ == keydir.None || id.Type == keydir.None { // no record of a key
		return x.kind == id.Kind
	}
	switch id.Kind {
	case format.KindTombstone: // takes the deadline with it
		return true
	case format.KindString: // replaces a value of any type, and leaves the deadline
		return x.typ != keydir.Deadline
	case format.KindElement, format.KindElementTombstone:
		if x.typ == keydir.FieldDeadlines { // the tombstone of a field takes its deadline with it
			return id.Kind == format.KindElementTombstone && id.Type == keydir.Hash && x.Element == string(id.Elem)
		}
		return (x.kind == format.KindElement || x.kind == format.KindElementTombstone) && x.typ == id.Type && x.Element == string(id.Elem)
	case format.KindFieldDeadline, format.KindFieldDeadlineTombstone:
		return x.typ == keydir.FieldDeadlines && x.Element == string(id.Elem)
	case format.KindDeadline, format.KindDeadlineTombstone:
		return x.typ == keydir.Deadline
	}
	return x.kind == id.Kind && x.typ == id.Type // counts
}
