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
	row *format.Row
	typ keydir.Type
	Lost
}

func keyOf(ns uint32, key []byte) string {
	return string(binary.AppendUvarint(nil, uint64(ns))) + string(key)
}

func (l losses) add(id *format.Identity, lost Lost) {
	at := keyOf(id.Namespace, id.Key)
	l[at] = append(l[at], loss{id.Row(), id.Type, lost})
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
		case x.row.Hides == format.HidesDeadline && !id.Row().Removes && id.Row().Home == x.row.Home:
			// The field exists again, but no record says any longer that its old deadline is gone.
			x.row, x.typ = format.RowOf(format.KindFieldDeadlineTombstone, keydir.FieldDeadlines), keydir.FieldDeadlines
			x.Lost.Kind = x.row.Text
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
	row := id.Row()
	if !x.row.OfStripe() || !row.OfStripe() { // no record of a key
		return x.row == row
	}
	switch {
	case row.Hides == format.HidesKey:
		return true
	case row.Hides == format.HidesContent:
		return x.typ != keydir.Deadline
	case row.Hides == format.HidesDeadline && x.typ == keydir.FieldDeadlines:
		return x.Element == string(id.Elem)
	}
	if x.row.Home != row.Home || x.typ != id.Type {
		return false
	}
	if row.Hides == format.HidesRange {
		from, to, ok1 := format.ParseRange(id.Elem)
		first, last, ok2 := format.ParseRange([]byte(x.Element))
		return ok1 && ok2 && !first.Less(from) && !to.Less(last)
	}
	return x.Element == string(id.Elem)
}
