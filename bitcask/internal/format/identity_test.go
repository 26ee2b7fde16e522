package format

import (
	"bytes"
	"testing"

	"github.com/stavedb/stave/internal/ordered"
	"github.com/stavedb/stave/keydir"
)

var identityKinds = []struct {
	k Kind
	t keydir.Type
}{
	{KindString, keydir.String}, {KindElement, keydir.Hash}, {KindElement, keydir.Set}, {KindElement, keydir.ZSet},
	{KindElement, keydir.List}, {KindMeta, keydir.Hash}, {KindMeta, keydir.List}, {KindBound, keydir.List},
	{KindOrder, keydir.ZSet}, {KindDeadline, keydir.Deadline}, {KindTombstone, keydir.Hash},
	{KindElementTombstone, keydir.Set}, {KindDeadlineTombstone, keydir.Deadline}, {KindNamespaces, keydir.None},
	{KindFieldDeadline, keydir.FieldDeadlines}, {KindFieldDeadlineTombstone, keydir.FieldDeadlines},
	{KindElement, keydir.Chunks}, {KindMeta, keydir.Chunks},
	{KindElement, keydir.Stream}, {KindMeta, keydir.Stream}, {KindTombstone, keydir.Stream}, {KindElementTombstone, keydir.Stream},
}

// FuzzIdentity proves that no two facts share an identity: an encoded fact decodes to itself, for
// arbitrary bytes, and the encodings of two facts are equal only if the facts are.
func FuzzIdentity(f *testing.F) {
	f.Add(uint8(18), uint8(2), []byte("s"), []byte("0000000000000001-0000000000000000"), []byte("s"), []byte("__meta__"))
	f.Add(uint8(20), uint8(10), []byte("s"), []byte(""), []byte("s"), []byte(""))
	f.Add(uint8(1), uint8(1), []byte("a:b"), []byte("c"), []byte("a"), []byte("b:c"))
	f.Add(uint8(1), uint8(5), []byte("a"), []byte("__len__"), []byte("a"), []byte("__len__"))
	f.Add(uint8(3), uint8(8), []byte("z"), []byte("s:8000000000000000:m"), []byte("z"), []byte("s:8000000000000000:m"))
	f.Add(uint8(0), uint8(14), []byte("k:8000001000000000"), []byte(""), []byte("k"), []byte("8000001000000000"))
	f.Add(uint8(0), uint8(0), []byte(""), []byte(""), []byte("\x00"), []byte(":"))
	f.Fuzz(func(t *testing.T, i, j uint8, key1, elem1, key2, elem2 []byte) {
		type fact struct {
			k         Kind
			t         keydir.Type
			key, elem []byte
		}
		make := func(i uint8, key, elem []byte) fact {
			c := identityKinds[int(i)%len(identityKinds)]
			if !c.k.HasElement() {
				elem = nil
			}
			return fact{c.k, c.t, key[:min(len(key), MaxKey)], elem[:min(len(elem), MaxElement)]}
		}
		encode := func(x fact) []byte { return AppendRecord(nil, x.k, x.t, -1, 3, x.key, x.elem, nil) }
		a, b := make(i, key1, elem1), make(j, key2, elem2)
		ea, eb := encode(a), encode(b)
		rec, err := ParseRecord(ea)
		if err != nil {
			t.Fatalf("%+v does not parse: %v", a, err)
		}
		if rec.Kind != a.k || rec.Type != a.t || !bytes.Equal(rec.Key, a.key) || !bytes.Equal(rec.Elem, a.elem) || rec.Namespace != 3 || rec.Size != len(ea) {
			t.Fatalf("%+v came back as %+v", a, rec.Identity)
		}
		same := a.k == b.k && a.t == b.t && bytes.Equal(a.key, b.key) && bytes.Equal(a.elem, b.elem)
		if same != bytes.Equal(ea, eb) {
			t.Fatalf("%+v and %+v: same fact %v, same encoding %v", a, b, same, !same)
		}
	})
}

// FuzzIndexOrder proves that the names of list indexes and scores sort as the
// numbers do.
func FuzzIndexOrder(f *testing.F) {
	f.Add(int64(-1), int64(0))
	f.Add(int64(-1<<63), int64(1<<63-1))
	f.Fuzz(func(t *testing.T, a, b int64) {
		if (a < b) != (IndexName(a) < IndexName(b)) {
			t.Fatalf("%d %s, %d %s", a, IndexName(a), b, IndexName(b))
		}
		if back, ok := ParseIndex([]byte(IndexName(a))); !ok || back != a {
			t.Fatal(a, back, ok)
		}
	})
}

// FuzzParseRecord feeds arbitrary bytes: never a panic, and what parses
// encodes to the same bytes, unless it is of a kind that only a later version knows.
func FuzzParseRecord(f *testing.F) {
	f.Add(AppendRecord(nil, KindString, keydir.String, -1, 0, "key", "", []byte("value")))
	f.Add(AppendRecord(nil, KindElement, keydir.ZSet, 7, 300, "key", "m", ordered.AppendHex(nil, 1)))
	f.Fuzz(func(t *testing.T, b []byte) {
		rec, err := ParseRecord(b)
		if err != nil {
			return
		}
		if rec.Unknown { // of a later version, which alone knows its content
			if rec.Size > len(b) || len(rec.Key)+len(rec.Elem)+len(rec.Value) > 0 {
				t.Fatalf("%x of an unknown kind parsed as %+v", b, rec)
			}
			return
		}
		delta := int64(-1)
		if rec.HasSeq {
			if delta = int64(rec.SeqDelta); delta < 0 {
				return
			}
		}
		again := AppendRecord(nil, rec.Kind, rec.Type, delta, rec.Namespace, rec.Key, rec.Elem, rec.Value)
		if !bytes.Equal(again[RecordCRCSize:], b[RecordCRCSize:rec.Size]) {
			t.Fatalf("%x parsed and encoded to %x", b[:rec.Size], again)
		}
	})
}
