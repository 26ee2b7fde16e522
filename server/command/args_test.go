package command

import (
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
)

func argsOf(words string) (a Args) {
	for _, word := range strings.Split(words, " ") {
		a = append(a, []byte(word))
	}
	return a
}

// A cursor is read as C's strtoul reads one.
func TestCursor(t *testing.T) {
	for text, want := range map[string]uint64{"0": 0, "12": 12, "+7": 7, "-0": 0, "18446744073709551615": 1<<64 - 1, "5\x00x": 5, "007": 7} {
		if got, err := argsOf(text).parseCursor(0); got != want || err != nil {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "\x00", "-1", "18446744073709551616", "1x", " 1", "-", "--1", "99999999999999999999"} {
		if got, err := argsOf(strings.ReplaceAll(text, " ", "\t")).parseCursor(0); err != errCursor {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
}

// A time to wait is rounded up, so that a short one is not one without an end; one beyond 292 years has no end.
func TestTimeout(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "1": time.Second, "0.0001": time.Millisecond, "1e-400": time.Millisecond, "0.0015": 2 * time.Millisecond, "1e3": 1000 * time.Second, "-0": 0, "9223372037": 0,
	} {
		if got, err := argsOf(text).parseTimeout(0); got != want || err != nil {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"x": "ERR timeout is not a float or out of range", "": "ERR timeout is not a float or out of range",
		"-1": "ERR timeout is negative", "1e30": "ERR timeout is out of range", "inf": "ERR timeout is out of range",
	} {
		if got, err := argsOf(text).parseTimeout(0); err == nil || err.Error() != want {
			t.Errorf("%q: %v, %v; want %s", text, got, err, want)
		}
	}
}

// The number of keys decides where they end, and never reaches beyond the request.
func TestParseKeys(t *testing.T) {
	for request, want := range map[string]string{
		"1 a": "a, 2", "2 a b c": "a b, 3", "0 a": string(errNumkeys), "-1 a": string(errNumkeys), "x a": string(errNumkeys), "3 a b": ErrSyntax.Error(),
		"9223372036854775807 a": ErrSyntax.Error(),
	} {
		keys, next, err := argsOf(request).parseKeys(0)
		got := strings.Join(keys, " ") + ", " + string(rune('0'+next))
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", request, got, want)
		}
	}
}

// Options of scans may stand in any order, the last of a kind holds, and MATCH "" is not no pattern.
func TestScanOptions(t *testing.T) {
	type1 := func(i int) (int, error) { return 2, nil } // as SCAN's TYPE
	for _, c := range []struct {
		words string
		other func(i int) (int, error)
		count int
		match string
		empty bool
		err   error
	}{
		{"count 5 MATCH a*", nil, 5, "a*", false, nil}, {"match a match b", nil, 0, "b", false, nil}, {"match ", nil, 0, "", true, nil},
		{"count 99999999999", nil, 1<<31 - 1, "", false, nil}, {"type x count 2", type1, 2, "", false, nil},
		{"count", nil, 0, "", false, ErrSyntax}, {"type x", nil, 0, "", false, ErrSyntax}, {"count x", nil, 0, "", false, ErrNotInteger}, {"count 0", nil, 0, "", false, ErrSyntax},
	} {
		o, err := argsOf(c.words).parseScanOptions(0, c.other)
		if err != c.err || err == nil && (o.Count != c.count || o.Match != c.match || o.emptyPattern != c.empty) {
			t.Errorf("%q: %+v, %v", c.words, o, err)
		}
	}
}

// The usage lines are a grammar: what COMMAND DOCS says of arguments follows from it.
func TestSyntax(t *testing.T) {
	for syntax, want := range map[string]string{
		"key value":                         "key:key value:string",
		"key [key ...]":                     "key:key+",
		"key field value [field value ...]": "key:key (field:string value:string)+",
		"key [NX | XX]":                     "key:key [nx=NX|xx=XX]",
		"key <EX seconds | PERSIST>":        "key:key <EX seconds:integer|persist=PERSIST>",
		"[LIMIT offset count]":              "[(LIMIT offset:integer count:integer)]",
	} {
		c := &Command{Syntax: syntax}
		if got := shown(c.Arguments()); got != want {
			t.Errorf("%s: %s, want %s", syntax, got, want)
		}
	}
}

// shown is a list of arguments in a short notation.
func shown(list []Argument) string {
	var text []string
	for _, a := range list {
		one := a.Name + ":" + a.Type
		switch a.Type {
		case "pure-token":
			one = a.Name + "=" + a.Token
		case "oneof":
			var parts []string
			for _, choice := range a.Choices {
				parts = append(parts, shown([]Argument{choice}))
			}
			one = "<" + strings.Join(parts, "|") + ">"
			if a.Optional {
				one = strings.Trim(one, "<>")
			}
		case "block":
			one = "(" + shown(a.Choices) + ")"
		}
		if a.Token != "" && a.Type != "pure-token" {
			one = a.Token + " " + one
		}
		if a.Optional {
			one = "[" + one + "]"
		}
		if a.Multiple {
			one += "+"
		}
		text = append(text, one)
	}
	return strings.Join(text, " ")
}

// TestListEncoding: as in Redis 7.2 and later a limit of elements is one of 8 KiB too, and 0 leaves room for one.
func TestListEncoding(t *testing.T) {
	s, err := db.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, c := range []struct {
		limit    int64
		elements int
		each     int
		want     string
	}{
		{0, 1, 1, "listpack"}, {0, 2, 1, "quicklist"}, {3, 3, 1, "listpack"}, {3, 4, 1, "quicklist"}, {100, 9, 1000, "quicklist"},
		{-1, 4, 1000, "listpack"}, {-1, 5, 1000, "quicklist"}, {-2, 8, 1000, "listpack"}, {-2, 9, 1000, "quicklist"}, {-9, 64, 1000, "listpack"},
	} {
		var e Encodings
		e.Init()
		e.ListSize.Store(c.limit)
		if err := s.Update(func(tx *db.Tx) error {
			l := tx.List("l")
			for range c.elements {
				if _, err := l.PushBack([]byte(strings.Repeat("x", c.each))); err != nil {
					return err
				}
			}
			if got, err := listEncoding(&e, l); got != c.want || err != nil {
				t.Errorf("%+v: %s, %v", c, got, err)
			}
			_, err := tx.Key("l").Delete()
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
}
