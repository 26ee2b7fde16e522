package orphans_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stavedb/stave/internal/orphans"
	"github.com/stavedb/stave/internal/resp"
)

// file is one of two parts, of a stream in database 3.
func file() (h orphans.Header, text []byte) {
	h = orphans.Header{ReplID: strings.Repeat("a", 40), From: 100, To: 200, Before: 7, Commands: 2, Time: time.Unix(1e9, 0).UTC()}
	parts := [][]byte{resp.AppendCommandStrings(nil, "SET", "k", "v\r\n"), resp.AppendCommandStrings(nil, "INCR", strings.Repeat("n", 100_000))}
	return h, bytes.Join(orphans.Encode(&h, 3, parts), nil)
}

// commands are those of a file, in words.
func commands(in io.Reader) (list []string, h orphans.Header, err error) {
	r, err := orphans.NewReader(in)
	if err != nil {
		return nil, h, err
	}
	for {
		args, err := r.Next()
		if err == io.EOF {
			return list, r.Header, nil
		}
		if err != nil {
			return list, r.Header, err
		}
		list = append(list, fmt.Sprintf("%.10q", args))
	}
}

func TestReadsWhatWasWritten(t *testing.T) {
	h, text := file()
	want := []string{`["SELECT" "3"]`, `["SET" "k" "v\r\n"]`, `["INCR" "nnnnnnnnnn"]`}
	for name, in := range map[string]io.Reader{"at once": bytes.NewReader(text), "in pieces": iotest.HalfReader(bytes.NewReader(text)), "by bytes": iotest.OneByteReader(bytes.NewReader(text))} {
		list, read, err := commands(in)
		if err != nil || read != h || !slices.Equal(list, want) {
			t.Errorf("%s: %q, %+v, %v; want %q, %+v", name, list, read, err, want, h)
		}
	}
	if name := h.Name(); name != h.ReplID+"-93.resp" || !orphans.IsName(name) {
		t.Errorf("its name is %s", name)
	}
	h.Before = orphans.Unknown
	if name := h.Name(); name != h.ReplID+"-100.resp" {
		t.Errorf("its name is %s", name)
	}
	for _, name := range []string{"notes", "a-1.resp", h.Name() + ".new", strings.Repeat("a", 40) + "-x.resp", strings.Repeat("a", 40) + ".resp"} {
		if orphans.IsName(name) {
			t.Errorf("%s is the name of one", name)
		}
	}
	if list, _, err := commands(bytes.NewReader(bytes.Join(orphans.Encode(&h, 3, nil), nil))); err != nil || len(list) > 0 {
		t.Errorf("a file that only counts: %q, %v", list, err)
	}
	if list, _, err := commands(bytes.NewReader(bytes.Join(orphans.Encode(&h, -1, [][]byte{resp.AppendCommandStrings(nil, "SELECT", "5")}), nil))); err != nil || len(list) != 1 {
		t.Errorf("a stream that selects a database: %q, %v", list, err)
	}
}

// TestDamage: every byte counts, and so does the end.
func TestDamage(t *testing.T) {
	_, text := file()
	for _, cut := range []int{0, 1, 30, 250, len(text) / 2, len(text) - 1} {
		if _, _, err := commands(bytes.NewReader(text[:cut])); !errors.Is(err, orphans.ErrDamaged) {
			t.Errorf("%d bytes of %d: %v", cut, len(text), err)
		}
	}
	sum := bytes.Index(text, []byte(`"crc32c"`))
	for at := sum; at < len(text); at += 1 + len(text)/1000 {
		other := bytes.Clone(text)
		other[at] ^= 1
		if _, _, err := commands(bytes.NewReader(other)); !errors.Is(err, orphans.ErrDamaged) {
			t.Errorf("a bit at %d: %v", at, err)
		}
	}
	newer := bytes.Replace(text, []byte(`"version":1`), []byte(`"version":2`), 1)
	if _, _, err := commands(bytes.NewReader(newer)); !errors.Is(err, orphans.ErrVersion) {
		t.Errorf("a newer version: %v", err)
	}
}

// FuzzReader: a file may have anything in it.
func FuzzReader(f *testing.F) {
	_, text := file()
	f.Add(text)
	f.Add(text[:300])
	f.Fuzz(func(t *testing.T, in []byte) {
		if _, _, err := commands(bytes.NewReader(in)); err != nil && !errors.Is(err, orphans.ErrDamaged) && !errors.Is(err, orphans.ErrVersion) {
			t.Error(err)
		}
	})
}

// TestCounter: the directory is looked at once a second, and one that cannot be listed has what it had.
func TestCounter(t *testing.T) {
	var c orphans.Counter
	name := strings.Repeat("a", 40) + "-100.resp"
	now, looks := time.Unix(1e9, 0), 0
	for _, tt := range []struct {
		after  time.Duration
		names  []string
		failed error
		want   int
		looks  int
	}{
		{0, nil, errors.New("no"), -1, 1}, {time.Second, nil, nil, 0, 2}, {time.Second / 2, []string{name}, nil, 0, 2}, {time.Second / 2, []string{name, name + ".new"}, nil, 1, 3},
		{time.Second, nil, errors.New("no"), 1, 4}, {time.Second, nil, nil, 0, 5}, {time.Second, nil, errors.New("no"), -1, 6}, {time.Second, []string{name}, nil, 1, 7},
	} {
		now = now.Add(tt.after)
		n := c.Count(now, func() ([]string, error) { looks++; return tt.names, tt.failed })
		if n != tt.want || looks != tt.looks {
			t.Errorf("%q, %v: %d after %d looks, want %d after %d", tt.names, tt.failed, n, looks, tt.want, tt.looks)
		}
	}
}
