package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/db"
)

const sampleFile = "testdata/status.sample"

// run takes a tour that is verified after each step: all that is stored, and the answers.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	t := &tour{out: stdout}
	t.verify = func() error { return cmp.Or(t.check(), t.checkAnswers()) }
	return t.main(ctx, args, stderr)
}

// TestInstalled takes the tour through the packages of this system, if it is one of Debian.
func TestInstalled(t *testing.T) {
	if _, err := os.Stat(defaultStatus); err != nil {
		t.Skip(err)
	}
	packages, err := os.ReadFile(defaultStatus)
	if err != nil {
		t.Fatal(err)
	}
	list, err := parseStatus(bytes.NewReader(packages))
	if err != nil || len(list) == 0 {
		t.Skip(err)
	}
	if err := run(t.Context(), []string{"-rank", list[0].Name, "-ttl", "1ms"}, io.Discard, io.Discard); err != nil {
		t.Error(err)
	}
}

// TestSample takes the whole tour through the sample. The clock is synctest's, so nobody waits for the summary to
// expire.
func TestSample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		dir := filepath.Join(t.TempDir(), "store")
		args := []string{"-status", sampleFile, "-dir", dir, "-section", "admin", "-needs", "zlib1g", "-rank", "bash", "-ttl", "1h"}
		if err := run(t.Context(), args, &out, io.Discard); err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		for _, want := range []string{
			"60 installed packages in " + sampleFile,
			"60 packages\n",
			"   1  libperl5.36                         28863 KiB\n",
			"section admin: 8 packages\n      adduser apt base-files debconf dpkg libpam-modules libpam-modules-bin passwd\n",
			"4 packages depend on zlib1g\n      dpkg gpgv libapt-pkg6.0 libperl5.36\n",
			"bash is number 5 of 60 by size",
			": 0 findings\n",
			"deleted: libperl5.36\n",
			"55 packages\n",
			"section admin: 6 packages\n      apt base-files ",
			"bash is number 2 of 55 by size",
			"the summary is gone",
			"load 60 packages in as many commits",
		} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("output lacks %q", want)
			}
		}
		if t.Failed() {
			t.Log(out.String())
		}
		checkKept(t, dir)
	})
}

// checkKept looks at what a tour of the sample has left.
func checkKept(t *testing.T, dir string) {
	store, err := db.Open(dir, &db.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if n, err := store.List(loadedKey).Len(); n != 55 || err != nil {
		t.Errorf("%d packages are kept (%v), want 55", n, err)
	}
	if err := run(t.Context(), []string{"-dir", dir, "-status", sampleFile}, io.Discard, io.Discard); err == nil {
		t.Error("a second tour through the same directory succeeds")
	}
}

func TestTemporaryDirectoryIsRemoved(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, ctx := range map[string]context.Context{"complete": t.Context(), "interrupted": ctx} {
		err := run(ctx, []string{"-status", sampleFile, "-ttl", "1ms"}, io.Discard, io.Discard)
		if want := ctx.Err(); !errors.Is(err, want) {
			t.Errorf("%s: error %v, want %v", name, err, want)
		}
		if left, err := os.ReadDir(temp); len(left) != 0 || err != nil {
			t.Errorf("%s: %v is left (%v)", name, left, err)
		}
	}
}

func TestBadCommandLines(t *testing.T) {
	for _, args := range [][]string{{"-nonsense"}, {"extra"}, {"-ttl", "0s"}, {"-ttl", "soon"}} {
		var stderr bytes.Buffer
		if err := run(t.Context(), args, io.Discard, &stderr); err == nil || !strings.Contains(err.Error(), "-help") || stderr.Len() == 0 {
			t.Errorf("%q: error %v, and stderr says %q", args, err, stderr.String())
		}
	}
	for want, args := range map[string][]string{
		`no package "nonsense"`:     {"-status", sampleFile, "-rank", "nonsense"},
		"no-such-file":              {"-status", "no-such-file"},
		"main_test.go: paragraph 1": {"-status", "main_test.go"},
	} {
		if err := run(t.Context(), args, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %s", args, err, want)
		}
	}
}

// TestVerifyHasTeeth damages a loaded store in one place at a time, in ways that are legal for a store but not true.
func TestVerifyHasTeeth(t *testing.T) {
	tests := []struct {
		name   string
		damage func(*db.Store) error
		want   string
	}{
		{"nothing", func(*db.Store) error { return nil }, ""},
		{"field", func(s *db.Store) error { return second(s.Hash("pkg:apt").Put("Version", []byte("0"))) }, `says "pkg:apt: Version=0", expected "pkg:apt: Version=`},
		{"field lost", func(s *db.Store) error { return second(s.Hash("pkg:apt").Delete("Section")) }, `expected "pkg:apt: Section=`},
		{"hash lost", func(s *db.Store) error { return second(s.Key("pkg:apt").Delete()) }, `expected "pkg:apt: `},
		{"hash more", func(s *db.Store) error { return second(s.Hash("pkg:x").Put("a", nil)) }, `says "pkg:x: a="`},
		{"member of the section", func(s *db.Store) error { return second(s.Set("section:libs").Remove("libc6")) }, `expected "section:libs: libc6"`},
		{"member of another section", func(s *db.Store) error { return second(s.Set("section:misc").Add("apt")) }, `says "section:misc: apt"`},
		{"section lost", func(s *db.Store) error { return second(s.Key("section:misc").Delete()) }, `expected "section:misc: `},
		{"dependency", func(s *db.Store) error { return second(s.Set("needed-by:libc6").Remove("apt")) }, `expected "needed-by:libc6: apt"`},
		{"another dependency", func(s *db.Store) error { return second(s.Set("needed-by:gpgv1").Add("tar")) }, `says "needed-by:gpgv1: tar"`},
		{"dependencies lost", func(s *db.Store) error { return second(s.Key("needed-by:gpgv1").Delete()) }, `expected "needed-by:gpgv1: apt"`},
		{"large size", func(s *db.Store) error { return second(s.SortedSet(sizeKey).Incr("tar", 1)) }, `says "by-size: `},
		{"small size", func(s *db.Store) error { return second(s.SortedSet(sizeKey).Incr("adduser", 1)) }, `says "by-size: `},
		{"size lost", func(s *db.Store) error { return second(s.SortedSet(sizeKey).Remove("libaudit-common")) }, `says "by-size: 0 `},
		{"order", func(s *db.Store) error { return s.List(loadedKey).Set(3, []byte("x")) }, `says "loaded: 3 x"`},
		{"order lost", func(s *db.Store) error { return second(s.List(loadedKey).PopBack()) }, `expected "loaded: 59 `},
		{"a key too many", func(s *db.Store) error { return s.String("x").Put(nil) }, `says "x: "`},
		{"summary", func(s *db.Store) error { return s.String(summaryKey).Put(nil) }, `says "cache:summary: ", expected "cache:summary: worked out`},
		{"summary lost", func(s *db.Store) error { return second(s.Key(summaryKey).Delete()) }, `expected "cache:summary: worked out`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tour := loaded(t)
			if err := test.damage(tour.store); err != nil {
				t.Fatal(err)
			}
			err := tour.check()
			if test.want == "" && err == nil {
				return
			}
			if test.want == "" || err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

// TestVerifySeesASummaryThatStays takes the deadline away: past it, the summary should have gone.
func TestVerifySeesASummaryThatStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tour := loaded(t)
		if had, err := tour.store.Key(summaryKey).Persist(); !had || err != nil {
			t.Fatal(had, err)
		}
		if err := tour.check(); err != nil {
			t.Error("before the deadline:", err)
		}
		time.Sleep(tour.ttl)
		if err := tour.check(); err == nil || !strings.Contains(err.Error(), `says "cache:summary: `) {
			t.Errorf("after the deadline: error %v", err)
		}
		tour.store.Close()
	})
}

// loaded is a tour after its first step.
func loaded(t *testing.T) *tour {
	t.Helper()
	packages, err := parseStatus(bytes.NewReader(sample))
	if err != nil {
		t.Fatal(err)
	}
	tour := &tour{
		out: io.Discard, dir: t.TempDir(), ttl: time.Hour,
		Question: Question{Section: "libs", Needs: "libc6", Rank: "perl-base"}, packages: packages,
	}
	if tour.store, err = db.Open(tour.dir, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tour.store.Close() })
	if err := tour.load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return tour
}

// second leaves out the first of two results.
func second[T any](_ T, err error) error { return err }
