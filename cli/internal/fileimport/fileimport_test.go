package fileimport_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stavedb/stave/cli/internal/fileimport"
	"github.com/stavedb/stave/db/dbtest"
)

// The first bytes say what a file is; what is no such file is refused.
func TestFormats(t *testing.T) {
	for text, want := range map[string]fileimport.Format{
		"": fileimport.Lines, "SET a b\n": fileimport.Lines, `{"key":`: fileimport.Lines, "REDIS0011": fileimport.RDB, "REDISlike": fileimport.Lines,
		"*1\r\n": fileimport.Commands, "#TS:1\r\n": fileimport.Commands, "file a.rdb seq 1 type b\n": fileimport.Manifest,
	} {
		if s, err := fileimport.Open("f", strings.NewReader(text)); err != nil || s.Format != want {
			t.Errorf("%q: %v, %v", text, s, err)
		}
	}
	if _, err := fileimport.Open("f", strings.NewReader("PK\x03\x04")); err == nil || !strings.HasPrefix(err.Error(), "f: it is a zip") {
		t.Error(err)
	}
}

// What is bad is skipped, counted and, up to a hundred of it, named, whatever the format.
func TestSkips(t *testing.T) {
	for unit, text := range map[string]string{
		"bad line":    strings.Repeat("{\n", 150) + "SET a 1\n",
		"bad command": strings.Repeat("*1\r\n$2\r\nNO\r\n", 150) + "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n",
		"bad row":     "id,x\n" + strings.Repeat("1\n", 150) + "a,1\n",
	} {
		store := dbtest.New(t)
		s, err := fileimport.Open("f", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		var warned []string
		o := fileimport.Options{KeepGoing: true, Warn: func(err error) { warned = append(warned, err.Error()) }}
		var r fileimport.Result
		if unit == "bad row" {
			table, err := s.Table(fileimport.TableOptions{Key: "{id}", Type: "hash", Separator: ','})
			if err != nil {
				t.Fatal(err)
			}
			r, err = table.Import(t.Context(), store, o)
			if err != nil {
				t.Fatal(err)
			}
		} else if r, err = s.Import(t.Context(), store, o); err != nil {
			t.Fatal(err)
		}
		if r.Skipped != 150 || r.Unit != unit || r.Keys+r.Commands != 1 || len(warned) != 101 || warned[100] != "more "+unit+"s follow; they are counted, not named" {
			t.Errorf("%s: %+v, %d warnings, the last is %q", unit, r, len(warned), warned[len(warned)-1])
		}
		if ok, err := store.Key("a").Exists(); err != nil || !ok {
			t.Errorf("%s: what comes after the bad ones is not stored: %v", unit, err)
		}
	}
}

// An option that does not fit is named, and an import whose context has ended returns that error after a warning.
func TestOptionsAndInterrupt(t *testing.T) {
	for _, o := range []fileimport.TableOptions{{Key: "{no}", Type: "hash"}, {Key: "x", Type: "hash"}, {Key: "{id", Type: "hash"}, {Key: "{id}", Type: "set", Value: "no"}, {Key: "{id}", Type: "zset", Value: "id"}} {
		s, err := fileimport.Open("f", strings.NewReader("id\n1\n"))
		if err != nil {
			t.Fatal(err)
		}
		o.Separator = ','
		if _, err := s.Table(o); err == nil {
			t.Errorf("%+v: no error", o)
		} else if _, ok := errors.AsType[*fileimport.OptionError](err); !ok {
			t.Errorf("%+v: %v", o, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	warned := 0
	s, err := fileimport.Open("f", strings.NewReader("SET a 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Import(ctx, dbtest.New(t), fileimport.Options{Warn: func(error) { warned++ }}); !errors.Is(err, context.Canceled) || warned != 1 {
		t.Errorf("%v, %d warnings", err, warned)
	}
}

// What is said to be stored when an import is interrupted is stored: the line, or the row, that has been read and not
// imported is not counted.
func TestInterruptNamesWhatIsStored(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for want, text := range map[string]string{
		"interrupted after f:0; the lines up to there are stored":   "SET a 1\nSET b 1\n",
		"interrupted at byte 3 of f; the rows before it are stored": "id\n1\n2\n",
	} {
		s, err := fileimport.Open("f", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		o := fileimport.Options{Warn: func(err error) { got = err.Error() }}
		if strings.HasPrefix(text, "id") {
			table, err := s.Table(fileimport.TableOptions{Key: "{id}", Type: "hash", Separator: ','})
			if err != nil {
				t.Fatal(err)
			}
			_, err = table.Import(ctx, dbtest.New(t), o)
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		} else if _, err := s.Import(ctx, dbtest.New(t), o); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
