package rdb_test

import (
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/stavedb/stave/internal/rdb"
)

// TestFunctions: a payload of redis-server 7.0 is read, ours is the same where nothing is compressed, and bad ones are
// told apart.
func TestFunctions(t *testing.T) {
	empty, err := hex.DecodeString("0a005d9b5c400f7fa2da") // of FUNCTION DUMP of a redis-server 7.0 without libraries
	if err != nil {
		t.Fatal(err)
	}
	if got := rdb.EncodeFunctions(nil); string(got) != string(empty) {
		t.Errorf("no libraries: %x", got)
	}
	long := "#!lua name=b\n" + strings.Repeat("x", 70_000)
	for _, libraries := range [][]string{nil, {"#!lua name=a\n"}, {"12", "#!lua name=a\nreturn", long}} {
		got, err := rdb.DecodeFunctions(rdb.EncodeFunctions(libraries))
		if err != nil || !slices.Equal(got, libraries) {
			t.Errorf("%.40q: %.40q, %v", libraries, got, err)
		}
	}
	for body, want := range map[string]error{
		"f6 01 61": rdb.ErrPreRelease, "00 01 61": rdb.ErrNoFunctions, "f5 05 61": rdb.ErrLibraryData, "f5": rdb.ErrLibraryData,
		"f5 01 61 f5": rdb.ErrLibraryData, "f5 01 61 02": rdb.ErrNoFunctions, "f5 c3 05 81 00 00 00 00": rdb.ErrLibraryData,
	} {
		if _, err := rdb.DecodeFunctions(seal(t, body)); err != want {
			t.Errorf("%s: %v, want %v", body, err, want)
		}
	}
	if _, err := rdb.DecodeFunctions(empty[:9]); err != rdb.ErrPayload {
		t.Errorf("cut: %v", err)
	}
}

// FuzzFunctions: any payload with a right checksum is libraries, which are written and read again as they are, or an
// error.
func FuzzFunctions(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\xf5\x01a\xf5\x02bc"))
	f.Add([]byte("\xf5\xc3\x04\x08\x00a\x20\x00"))
	f.Add([]byte("\xf5\xc0\x0c\xf6"))
	f.Fuzz(func(t *testing.T, body []byte) {
		payload := rdb.Resealed(append(slices.Clone(body), make([]byte, 10)...))
		libraries, err := rdb.DecodeFunctions(payload)
		if err != nil {
			return
		}
		again, err := rdb.DecodeFunctions(rdb.EncodeFunctions(libraries))
		if err != nil || !slices.Equal(again, libraries) {
			t.Errorf("%x: %q became %q, %v", body, libraries, again, err)
		}
	})
}

// TestLibraryName reads the name of a library from its first line.
func TestLibraryName(t *testing.T) {
	for text, want := range map[string]string{
		"#!lua name=a\n": "a", "#!LUA  NAME=a_1 \r\nx": "a_1", "#!lua 'name=b'\n": "b", "#!lua \"name=b\"\n": "b",
		"": "", "name=a\n": "", "#!lua name=a": "", "#!lua\n": "", "#!lua name=\n": "", "#!lua name=a name=b\n": "", "#!lua name=a x\n": "", "#!lua name=a-b\n": "", "#!lua nam\n": "",
	} {
		if got := rdb.LibraryName(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
