package followlog

import (
	"errors"
	"strings"
	"testing"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/keydir"
)

// TestValidate: a record whose value or name the index cannot hold is damage of the segment, at its offset, before any
// record of its commit is applied.
func TestValidate(t *testing.T) {
	sg := segment.New([16]byte{1}, 7, nil)
	for _, c := range []struct {
		kind      format.Kind
		typ       keydir.Type
		elem, val string
		bad       string // part of the reason; "": it is sound
	}{
		{format.KindString, keydir.String, "", "any\x00thing", ""},
		{format.KindDeadline, keydir.Deadline, "", "1700000000000", ""},
		{format.KindDeadline, keydir.Deadline, "", "soon", "deadline is not a number"},
		{format.KindFieldDeadline, keydir.FieldDeadlines, "f", "", "deadline is not a number"},
		{format.KindElement, keydir.Hash, "any", "", ""},
		{format.KindElement, keydir.ZSet, "m", "3ff0000000000000", ""},
		{format.KindElement, keydir.ZSet, "m", "1.0", "score is not 16 hex digits"},
		{format.KindElementTombstone, keydir.ZSet, "m", "", ""},
		{format.KindElement, keydir.List, format.IndexName(-3), "", ""},
		{format.KindElement, keydir.List, "first", "", "no index of a list"},
		{format.KindElementTombstone, keydir.List, "first", "", "no index of a list"},
		{format.KindElement, keydir.Chunks, format.IndexName(-1), "", "no index of a list or of a chunk"},
		{format.KindElement, keydir.Stream, format.EntryName(keydir.StreamID{Ms: 1, Seq: 2}), "", ""},
		{format.KindElement, keydir.Stream, "1-2", "", format.BadEntryName},
		{format.KindElement, keydir.StreamGroups, "?", "", format.BadGroups},
		{format.KindMeta, keydir.Hash, "", "whatever", ""},
		{format.KindMeta, keydir.Stream, "", "short", format.BadStreamMeta},
		{format.KindNamespaces, keydir.None, "", "\xff", "namespace map"},
	} {
		e := &format.Entry{Identity: format.Identity{Kind: c.kind, Type: c.typ, Key: []byte("k"), Elem: []byte(c.elem)}, At: 40, Inline: []byte(c.val)}
		err := Validate(sg, e)
		corrupt, damage := errors.AsType[*failure.CorruptError](err)
		switch {
		case c.bad == "" && err != nil, c.bad != "" && !damage:
			t.Errorf("%+v: %v", c, err)
		case damage && (!strings.Contains(corrupt.Reason, c.bad) || corrupt.File != sg.Name || corrupt.Offset != 40):
			t.Errorf("%+v: %v", c, err)
		}
	}
}
