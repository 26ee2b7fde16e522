package jsonl_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/jsonl"
)

// largeList is a line that takes more than one commit: some elements of a MiB, and what comes after them.
func largeList(key string, rest ...string) string {
	return `{"key":"` + key + `","type":"list","value":["` + strings.Repeat(strings.Repeat("x", 1<<20)+`","`, 40) + strings.Join(rest, `","`) + `"]}`
}

// A store that takes no writes fails the import of a large collection as that of any line: BadLine is not asked.
func TestStoreThatFailsAtALargeLine(t *testing.T) {
	s := open(t)
	im := jsonl.NewImporter(s, jsonl.ImportOptions{BadLine: func(e *jsonl.LineError) error {
		t.Errorf("asked about line %d", e.Line)
		return nil
	}})
	s.Close()
	err := im.Add(7, []byte(largeList("k", "z")))
	e, ok := errors.AsType[*jsonl.LineError](err)
	if !ok || e.Line != 7 || !errors.Is(err, db.ErrClosed) {
		t.Errorf("%.200v", err)
	}
	if r := im.Result(); r != (jsonl.ImportResult{}) {
		t.Errorf("%+v", r)
	}
}

// A large collection of which the store refuses an element is skipped as a whole: no part of it stays.
func TestLargeLineIsRefused(t *testing.T) {
	s := open(t)
	set := bytes.Buffer{}
	set.WriteString(`{"key":"k","type":"set","value":[`)
	for i := range 300 { // some 18 MB
		set.WriteString(`"` + strings.Repeat("m", 60_000) + string(rune('A'+i/26)) + string(rune('a'+i%26)) + `",`)
	}
	set.WriteString(`"` + strings.Repeat("m", 70_000) + `"]}`) // too long
	var bad []int
	text := str("a") + "\n" + set.String() + "\n" + str("b") + "\n"
	r, err := jsonl.Import(t.Context(), s, strings.NewReader(text), jsonl.ImportOptions{BadLine: func(e *jsonl.LineError) error {
		bad = append(bad, e.Line)
		return nil
	}})
	if err != nil || len(bad) != 1 || bad[0] != 2 || r.Keys != 2 || r.Skipped != 1 {
		t.Errorf("%+v, %v, %v", r, bad, err)
	}
	if got := exported(t, s); got != str("a")+"\n"+str("b")+"\n" {
		t.Errorf("%.300s", got)
	}
}

// A long text of control characters, such as a bitmap of zeros, is written as base64: as JSON text it would be six
// times as long, and the line of one of 512 MiB longer than what an import takes.
func TestLongTextOfControlCharacters(t *testing.T) {
	const size = 1 << 20
	zeros, quotes, text := make([]byte, size), bytes.Repeat([]byte(`"\`), size/2), bytes.Repeat([]byte("naïve\n"), size/7)
	from, to := open(t), open(t)
	for i, value := range [][]byte{zeros, quotes, text, bytes.Repeat([]byte("\u0085"), size/2)} {
		name := string(rune('a' + i))
		if err := from.String(name).Put(value); err != nil {
			t.Fatal(err)
		}
		if _, err := from.Hash("hash").Put(name, value); err != nil {
			t.Fatal(err)
		}
	}
	got := exported(t, from)
	if most := 2 * 4 * size * 3 / 2; len(got) > most {
		t.Errorf("%d bytes, want %d at most", len(got), most)
	}
	if strings.Count(got, `na`) != 2*(size/7) {
		t.Error("text that is shorter as such is base64")
	}
	lines(t, to, got)
	if again := exported(t, to); again != got {
		t.Error("what was imported is something else")
	}
}
