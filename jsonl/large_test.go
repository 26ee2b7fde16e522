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
