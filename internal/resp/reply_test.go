package resp_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/internal/test/chance"
)

func TestDecode(t *testing.T) {
	text := func(kind resp.Kind, s string) resp.Reply { return resp.Reply{Kind: kind, Text: []byte(s)} }
	number := func(n int64) resp.Reply { return resp.Reply{Kind: resp.Integer, Int: n} }
	for wire, want := range map[string]resp.Reply{
		"+OK\r\n":                    text(resp.SimpleString, "OK"),
		"-ERR no\r\n":                text(resp.Error, "ERR no"),
		":-42\r\n":                   number(-42),
		":+7\r\n":                    number(7),
		"$3\r\na\r\n\r\n":            text(resp.BulkString, "a\r\n"),
		"$0\r\n\r\n":                 text(resp.BulkString, ""),
		"$-1\r\n":                    {Kind: resp.BulkString, Null: true},
		"*-1\r\n":                    {Kind: resp.Array, Null: true},
		"_\r\n":                      {Kind: resp.Null, Null: true},
		"#t\r\n":                     {Kind: resp.Boolean, Int: 1},
		"#f\r\n":                     {Kind: resp.Boolean},
		",1.5\r\n":                   {Kind: resp.Double, Float: 1.5, Text: []byte("1.5")},
		",-inf\r\n":                  {Kind: resp.Double, Float: math.Inf(-1), Text: []byte("-inf")},
		"(123456789012345678901\r\n": text(resp.BigNumber, "123456789012345678901"),
		"!5\r\nERR x\r\n":            text(resp.BulkError, "ERR x"),
		"=5\r\ntxt:a\r\n":            {Kind: resp.Verbatim, Format: "txt", Text: []byte("a")},
		"*2\r\n:1\r\n*0\r\n":         {Kind: resp.Array, Items: []resp.Reply{number(1), {Kind: resp.Array, Items: []resp.Reply{}}}},
		"%1\r\n+a\r\n:1\r\n":         {Kind: resp.Map, Items: []resp.Reply{text(resp.SimpleString, "a"), number(1)}},
		"~1\r\n:1\r\n":               {Kind: resp.Set, Items: []resp.Reply{number(1)}},
		">1\r\n:1\r\n":               {Kind: resp.Push, Items: []resp.Reply{number(1)}},
		"|1\r\n+ttl\r\n:3\r\n:9\r\n": number(9),
	} {
		got, rest, err := resp.Decode([]byte(wire + "rest"))
		if err != nil || string(rest) != "rest" || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, rest %q, %v", wire, got, rest, err)
		}
		slow, err := resp.NewDecoder(iotest.OneByteReader(strings.NewReader(wire))).Read()
		if err != nil || !reflect.DeepEqual(slow, want) {
			t.Errorf("%q byte by byte: %+v, %v", wire, slow, err)
		}
		if _, _, err := resp.Decode([]byte(wire[:len(wire)-1])); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%q cut short: %v", wire, err)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, wire := range []string{
		"?\r\n", "\r\n", "+OK\n", ":x\r\n", ":\r\n", "#x\r\n", ",x\r\n", "$x\r\n", "$-2\r\n", "*-2\r\n", "%-1\r\n",
		"$99999999999\r\n", "*99999999999\r\n", "$1\r\nabc", "=3\r\nabc\r\n",
		"+" + strings.Repeat("a", 70<<10), strings.Repeat("*1\r\n", 100), strings.Repeat("|0\r\n", 1000),
	} {
		if r, _, err := resp.Decode([]byte(wire)); !errors.Is(err, resp.ErrProtocol) {
			t.Errorf("%.20q: %+v, %v", wire, r, err)
		}
	}
	// Announcements that nothing backs end with the stream, and cost no memory on the way.
	for _, wire := range []string{"$536870912\r\nabc", "*1073741824\r\n:1\r\n", "%1073741824\r\n"} {
		if _, _, err := resp.Decode([]byte(wire)); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%q: %v", wire, err)
		}
	}
	if _, _, err := resp.Decode(nil); err != io.EOF {
		t.Errorf("nothing: %v", err)
	}
}

func TestDecoderReadsLargeBulk(t *testing.T) {
	want := bytes.Repeat([]byte("0123456789"), 500_000)
	var w resp.Writer
	w.Bulk(want)
	w.Simple("next")
	d := resp.NewDecoder(bytes.NewReader(w.Bytes()))
	got, err := d.Read()
	if err != nil || !bytes.Equal(got.Text, want) {
		t.Fatal(len(got.Text), err)
	}
	if next, err := d.Read(); err != nil || next.String() != "next" {
		t.Fatal(next, err)
	}
	if _, err := d.Read(); err != io.EOF {
		t.Fatal(err)
	}
}

func TestServerError(t *testing.T) {
	r, _, _ := resp.Decode([]byte("-WRONGTYPE Operation\r\n"))
	var e resp.ServerError
	if !r.IsError() || !errors.As(r.Err(), &e) || e.Code() != "WRONGTYPE" || e.Error() != "WRONGTYPE Operation" {
		t.Errorf("%+v, %v", r, r.Err())
	}
	if ok, _, _ := resp.Decode([]byte("+OK\r\n")); ok.Err() != nil {
		t.Error(ok.Err())
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("*2\r\n$3\r\nfoo\r\n:1\r\n"))
	f.Add([]byte("%1\r\n+a\r\n,1.5\r\n"))
	f.Add([]byte("|1\r\n+a\r\n#t\r\n=5\r\ntxt:a\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		whole, _, err := resp.Decode(b)
		pieces, err2 := resp.NewDecoder(iotest.OneByteReader(bytes.NewReader(b))).Read()
		if (err == nil) != (err2 == nil) {
			t.Fatalf("whole: %v, in pieces: %v", err, err2)
		}
		if err == nil && !math.IsNaN(whole.Float) && !strings.Contains(strings.ToLower(string(b)), "nan") && !reflect.DeepEqual(whole, pieces) {
			t.Fatalf("whole: %+v, in pieces: %+v", whole, pieces)
		}
	})
}

func TestWriter(t *testing.T) {
	for _, tt := range []struct {
		name         string
		write        func(w *resp.Writer)
		resp2, resp3 string
	}{
		{"simple", func(w *resp.Writer) { w.Simple("OK") }, "+OK\r\n", "+OK\r\n"},
		{"error cannot forge replies", func(w *resp.Writer) { w.Error("ERR a\r\n+OK") }, "-ERR a  +OK\r\n", "-ERR a  +OK\r\n"},
		{"small int", func(w *resp.Writer) { w.Int(7) }, ":7\r\n", ":7\r\n"},
		{"least int", func(w *resp.Writer) { w.Int(math.MinInt64) }, ":-9223372036854775808\r\n", ":-9223372036854775808\r\n"},
		{"bulk", func(w *resp.Writer) { w.Bulk([]byte("a\r\n")) }, "$3\r\na\r\n\r\n", "$3\r\na\r\n\r\n"},
		{"nil bulk is empty", func(w *resp.Writer) { w.Bulk(nil) }, "$0\r\n\r\n", "$0\r\n\r\n"},
		{"bulk int", func(w *resp.Writer) { w.BulkInt(-10) }, "$3\r\n-10\r\n", "$3\r\n-10\r\n"},
		{"null", func(w *resp.Writer) { w.Null() }, "$-1\r\n", "_\r\n"},
		{"null array", func(w *resp.Writer) { w.NullArray() }, "*-1\r\n", "_\r\n"},
		{"map", func(w *resp.Writer) { w.Map(2) }, "*4\r\n", "%2\r\n"},
		{"set", func(w *resp.Writer) { w.Set(2) }, "*2\r\n", "~2\r\n"},
		{"push", func(w *resp.Writer) { w.Push(2) }, "*2\r\n", ">2\r\n"},
		{"double", func(w *resp.Writer) { w.Double(1.5) }, "$3\r\n1.5\r\n", ",1.5\r\n"},
		{"true", func(w *resp.Writer) { w.Bool(true) }, ":1\r\n", "#t\r\n"},
		{"false", func(w *resp.Writer) { w.Bool(false) }, ":0\r\n", "#f\r\n"},
		{"verbatim", func(w *resp.Writer) { w.Verbatim("txt", "a") }, "$1\r\na\r\n", "=5\r\ntxt:a\r\n"},
		{"big number", func(w *resp.Writer) { w.BigNumber("12") }, "$2\r\n12\r\n", "(12\r\n"},
	} {
		for version, want := range map[int]string{2: tt.resp2, 3: tt.resp3} {
			var w resp.Writer
			w.SetVersion(version)
			tt.write(&w)
			if got := string(w.Bytes()); got != want || w.Version() != version {
				t.Errorf("%s, RESP%d: %q, want %q", tt.name, version, got, want)
			}
		}
	}
}

func TestWriterLengthAfterElements(t *testing.T) {
	var w resp.Writer
	w.Simple("OK")
	mark := w.Begin()
	for range 12 {
		w.Int(1)
	}
	w.EndArray(mark, 12)
	w.SetVersion(3)
	mark = w.Begin()
	w.EndSet(mark, 0)
	if got, want := string(w.Bytes()), "+OK\r\n*12\r\n"+strings.Repeat(":1\r\n", 12)+"~0\r\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestWriterLimit(t *testing.T) {
	var w resp.Writer
	w.SetLimit(100)
	w.Bulk(make([]byte, 50))
	if w.Exceeded() {
		t.Error("exceeded too early")
	}
	w.BulkString(strings.Repeat("a", 50))
	if !w.Exceeded() || w.Len() > 100 {
		t.Errorf("%d bytes within a limit of 100", w.Len())
	}
	w.SetLimit(0)
	w.Bulk(make([]byte, 500))
	if w.Exceeded() || w.Len() < 500 {
		t.Error("a limit of 0 is none")
	}
}

func TestWriterDiscard(t *testing.T) {
	var w resp.Writer
	w.Bulk(make([]byte, 1<<20))
	w.Simple("OK")
	w.Discard(w.Len() - 5)
	if got := string(w.Bytes()); got != "+OK\r\n" {
		t.Errorf("kept %q", got)
	}
	w.Discard(5)
	if w.Len() != 0 || w.Held() > 64<<10 {
		t.Errorf("drained writer: %d bytes, holds %d", w.Len(), w.Held())
	}
}

// TestWriterDiscardInPieces sends replies in pieces while others are added: nothing is lost or repeated.
func TestWriterDiscardInPieces(t *testing.T) {
	r := chance.Rand(t)
	var w resp.Writer
	var want, got []byte
	for i := range 2000 {
		value := bytes.Repeat([]byte{byte(i)}, r.IntN(1<<r.IntN(14)))
		want = fmt.Appendf(want, "$%d\r\n%s\r\n", len(value), value)
		switch from := w.Len(); r.IntN(4) {
		case 0:
			w.EndBulk(append(w.BeginBulk(), value...))
		case 1:
			_ = append(w.BeginBulk(), value...) // given up
			w.Bulk(value)
		case 2:
			w.Error("in vain")
			w.Truncate(from)
			w.Bulk(value)
		default:
			w.Bulk(value)
		}
		n := r.IntN(w.Len() + 1)
		got = append(got, w.Bytes()[:n]...)
		w.Discard(n)
	}
	if got = append(got, w.Bytes()...); !bytes.Equal(got, want) {
		t.Error("other bytes were sent than written")
	}
	w.SetLimit(w.Len() + 100)
	w.EndBulk(append(w.BeginBulk(), make([]byte, 90)...))
	if !w.Exceeded() || w.Len()+len(got) < len(want) {
		t.Error("the limit does not hold")
	}
}

func TestAppendDouble(t *testing.T) {
	for f, want := range map[float64]string{
		0: "0", math.Copysign(0, -1): "-0", 1: "1", -17: "-17", 1.5: "1.5", 0.1: "0.1", 3.14159: "3.14159",
		1e15: "1000000000000000", 1e18: "1000000000000000000", 1 << 62: "4611686018427387904", 1e19: "1e+19", 1e21: "1e+21",
		1.5e300: "1.5e+300", 1e-5: "0.00001", 1e-6: "0.000001", 1e-7: "1e-7", 1.5e-7: "1.5e-7", 123456.789: "123456.789",
		math.MaxFloat64: "1.7976931348623157e+308", 5e-324: "5e-324", math.Inf(1): "inf", math.Inf(-1): "-inf",
		-0.000123: "-0.000123", 12345678901234567890: "12345678901234567000",
	} {
		if got := string(resp.AppendDouble(nil, f)); got != want {
			t.Errorf("%g: %s, want %s", f, got, want)
		}
	}
	if got := string(resp.AppendDouble(nil, math.NaN())); got != "nan" {
		t.Errorf("NaN: %s", got)
	}
	r := chance.Rand(t)
	for range 10_000 {
		f := math.Float64frombits(r.Uint64())
		back, err := strconv.ParseFloat(string(resp.AppendDouble(nil, f)), 64)
		if !math.IsNaN(f) && (err != nil || back != f) {
			t.Fatalf("%b reads back as %b, %v", f, back, err)
		}
	}
}

func TestParseInt(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "7": 7, "-1": -1, "9223372036854775807": math.MaxInt64, "-9223372036854775808": math.MinInt64,
	} {
		if got, ok := resp.ParseInt([]byte(text)); !ok || got != want {
			t.Errorf("%s: %d, %t", text, got, ok)
		}
	}
	for _, text := range []string{
		"", "-", "-0", "01", "+1", " 1", "1 ", "1.0", "0x1", "9223372036854775808", "-9223372036854775809", "18446744073709551616", "99999999999999999999", "1234567890123456789012",
	} {
		if got, ok := resp.ParseInt([]byte(text)); ok {
			t.Errorf("%q: %d", text, got)
		}
	}
}
