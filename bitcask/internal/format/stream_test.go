package format

import (
	"testing"

	"github.com/stavedb/stave/keydir"
)

// FuzzStream: what parses is written the same again, and names sort as ids do.
func FuzzStream(f *testing.F) {
	f.Add(uint64(1), uint64(2), uint64(3), uint64(4), []byte("1-0 5-3 0-0 7 2"))
	f.Add(uint64(0), uint64(0), uint64(1<<64-1), uint64(1<<64-1), []byte("18446744073709551615-18446744073709551615 0-0 0-0 18446744073709551615 0"))
	f.Add(uint64(0), uint64(1), uint64(1), uint64(0), []byte("01-0 5-3 0-0 7 2"))
	f.Fuzz(func(t *testing.T, ms1, seq1, ms2, seq2 uint64, value []byte) {
		a, b := keydir.StreamID{Ms: ms1, Seq: seq1}, keydir.StreamID{Ms: ms2, Seq: seq2}
		if id, ok := ParseEntryName([]byte(EntryName(a))); !ok || id != a {
			t.Fatalf("%v came back as %v", a, id)
		}
		if less := EntryName(a) < EntryName(b); less != a.Less(b) {
			t.Fatalf("%v before %v: %v by name", a, b, less)
		}
		if id, ok := ParseEntryName(value); ok && EntryName(id) != string(value) {
			t.Fatalf("%q is %v", value, id)
		}
		m, ok := ParseStreamMeta(value)
		if again := AppendStreamMeta(nil, m); ok && string(again) != string(value) {
			t.Fatalf("%q is written as %q", value, again)
		}
		m = keydir.StreamMeta{First: a, Last: b, Deleted: a, Added: ms1, Len: int(seq1 >> 2)}
		if again, ok := ParseStreamMeta(AppendStreamMeta(nil, m)); !ok || again != m {
			t.Fatalf("%+v came back as %+v", m, again)
		}
	})
}
