package segment

import (
	"bytes"
	"testing"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/keydir"
)

// TestValueIn holds the quick answer about a record against the one that parses it: for whole records they are the
// same, for damaged ones the quick answer may be no, and is never yes where the other is no.
func TestValueIn(t *testing.T) {
	kinds := []Query{
		{Kind: format.KindString, Type: keydir.String},
		{Kind: format.KindElement, Type: keydir.Hash}, {Kind: format.KindElement, Type: keydir.List},
		{Kind: format.KindElement, Type: keydir.Set}, {Kind: format.KindElement, Type: keydir.ZSet},
		{Kind: format.KindElement, Type: keydir.Chunks}, {Kind: format.KindElement, Type: keydir.Stream},
		{Kind: format.KindElement, Type: keydir.StreamGroups},
		{Kind: format.KindMeta, Type: keydir.List}, {Kind: format.KindDeadline, Type: keydir.Deadline},
		{Kind: format.KindTombstone, Type: keydir.Hash},
	}
	rng := chance.Rand(t)
	text := func() string {
		n := rng.IntN(4)
		if rng.IntN(8) == 0 {
			n = 120 + rng.IntN(20) // lengths of one and two bytes
		}
		b := make([]byte, n)
		for i := range b {
			b[i] = "ab:"[rng.IntN(3)]
		}
		return string(b)
	}
	query := func() Query {
		q := kinds[rng.IntN(len(kinds))]
		q.Namespace, q.Key = uint32(rng.IntN(3)*100), text()
		if q.Kind.HasElement() {
			q.Elem = text()
		}
		return q
	}
	yes := 0
	for range 20000 {
		is, asked := query(), query()
		if rng.IntN(2) == 0 {
			asked = is
		}
		asked.anyElem = rng.IntN(8) == 0
		value := []byte(text())
		b := format.AppendRecord(nil, is.Kind, is.Type, int64(rng.IntN(400)-200), is.Namespace, is.Key, is.Elem, value)
		size := len(b)
		b = append(b, text()...) // the location's class may reach further
		quickKind := !asked.anyElem || !asked.Kind.HasElement()
		if rng.IntN(4) == 0 {
			b[format.RecordCRCSize+rng.IntN(len(b)-format.RecordCRCSize)] ^= 1 << rng.IntN(8)
			quickKind = false
		}
		if rng.IntN(8) == 0 {
			b = b[:rng.IntN(len(b)+1)]
			quickKind = false
		}
		rec, err := format.ParseRecord(b)
		want := err == nil && asked.Matches(&rec)
		got, gotSize, ok := asked.valueIn(b)
		switch {
		case ok && (!want || !bytes.Equal(got, rec.Value) || gotSize != rec.Size):
			t.Fatalf("%+v in %q: %q of %d bytes, want %v %q of %d", asked, b, got, gotSize, want, rec.Value, rec.Size)
		case quickKind && ok != want:
			t.Fatalf("%+v in %q of %d bytes: %v, want %v", asked, b, size, ok, want)
		}
		if ok {
			yes++
		}
	}
	if yes < 2000 {
		t.Errorf("only %d records were the ones asked for", yes)
	}
}
