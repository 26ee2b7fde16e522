package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask/archive"
	"github.com/stavedb/stave/bitcask/archive/archivetest"
	"github.com/stavedb/stave/internal/test/chance"
)

// TestStore: a bucket does what every Store does, and those with different prefixes know nothing of each other.
func TestStore(t *testing.T) {
	g := startGateway(t)
	n := 0
	archivetest.Test(t, func(t *testing.T) archive.Store {
		n++
		t.Cleanup(func() {
			if left := g.uploads(g.open("")); left > 0 {
				t.Errorf("%d objects were begun and are not there", left)
			}
		})
		return g.open(strings.Repeat("a", n)) // each is a prefix of the next one
	})
}

// TestURLs: what Open takes.
func TestURLs(t *testing.T) {
	for url, want := range map[string]string{
		"s3://bucket": "s3://bucket/", "s3://bucket/": "s3://bucket/", "s3://bucket/a": "s3://bucket/a/", "s3://bucket/a/b/": "s3://bucket/a/b/",
	} {
		s, err := Open(url)
		if err != nil || s.String() != want {
			t.Errorf("%s: %v, %v", url, s, err)
		}
	}
	for url, want := range map[string]string{
		"s3:bucket": "it has the form", "s3://": "it has the form", "http://bucket/x": "it has the form", "s3:///x": "it has the form",
		"s3://key:hidden@bucket/x": "credentials come from", "s3://bucket/x?key=hidden": "credentials come from", "s3://bucket/x#hidden": "credentials come from", "s3://Not_a_bucket/x": "no name of a bucket",
		"s3://key:hid/hidden@bucket": "it has the form", "s3://hidden@bucket": "credentials come from", "s3:hidden@bucket": "it has the form",
		"s3://key:12/hidden@bucket": "no name of a bucket", "s3://key/%hidden@bucket": "it has the form",
	} {
		if _, err := Open(url); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hid") {
			t.Errorf("%s: %v", url, err)
		}
	}
	for _, endpoint := range []string{"localhost:9000", "ftp://x", "http://x/path"} {
		t.Setenv("AWS_ENDPOINT_URL", endpoint)
		if _, err := Open("s3://bucket"); err == nil || !strings.Contains(err.Error(), "AWS_ENDPOINT_URL") {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
}

// failures are the errors of all methods.
func failures(t *testing.T, s *Store) (errs []error) {
	t.Helper()
	ctx, done := context.WithTimeout(t.Context(), time.Minute)
	defer done()
	_, listErr := s.List(ctx, "")
	_, getErr := s.Get(ctx, "x/1")
	errs = []error{listErr, getErr, s.Put(ctx, "x/1", strings.NewReader("x")), s.Put(ctx, "x/2", bytes.NewReader(make([]byte, partUnit+1))), s.Delete(ctx, "x/1")}
	if err := ctx.Err(); err != nil {
		t.Fatal(err)
	}
	return errs
}

// TestErrors: with what is wrong every method fails, soon, with an error that says what and where, and that is not the one
// of an object that is not there.
func TestErrors(t *testing.T) {
	g := startGateway(t)
	for name, c := range map[string]struct {
		says string
		set  func(t *testing.T) string
	}{
		"another secret":  {"signature", func(t *testing.T) string { t.Setenv("AWS_SECRET_ACCESS_KEY", "wrong"); return bucket }},
		"an unknown key":  {"ccess", func(t *testing.T) string { t.Setenv("AWS_ACCESS_KEY_ID", "nobody"); return bucket }},
		"no bucket":       {"bucket does not exist", func(*testing.T) string { return "nothing" }},
		"nothing listens": {"refused", func(t *testing.T) string { t.Setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1"); return bucket }},
		"no credentials": {"set $AWS_ACCESS_KEY_ID", func(t *testing.T) string {
			t.Setenv("AWS_ACCESS_KEY_ID", "")
			t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1:1")
			return bucket
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Open("s3://" + c.set(t) + "/a")
			must(t, err)
			for i, err := range failures(t, s) {
				if name == "no bucket" && i == 4 && err == nil {
					continue // a service may say that the object is gone
				}
				if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), s.String()) || errors.Is(err, fs.ErrNotExist) {
					t.Errorf("method %d: %v", i, err)
				}
			}
		})
	}
	if list, err := g.open("").List(t.Context(), ""); len(list) > 0 || err != nil {
		t.Errorf("List: %v, %v", list, err)
	}
}

// TestCanceledList: a list that is canceled in the middle is an error, and not a shorter list.
func TestCanceledList(t *testing.T) {
	g := startGateway(t)
	s := g.open("a")
	for i := range 3 {
		must(t, s.Put(t.Context(), fmt.Sprint("x/", i), strings.NewReader("x")))
	}
	for after := range 30 {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Duration(after)*200*time.Microsecond, cancel)
		if list, err := s.List(ctx, ""); err == nil && len(list) != 3 || err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("List: %v, %v", list, err)
		}
		cancel()
	}
}

// TestBrokenDownload: an object that comes in pieces, for the connection breaks again and again, or goes silent, is whole.
func TestBrokenDownload(t *testing.T) {
	g, r := startGateway(t), chance.Rand(t)
	b := make([]byte, 20<<20)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	must(t, g.open("a").Put(t.Context(), "x/1", bytes.NewReader(b)))
	w := g.wired()
	for _, stalls := range []bool{false, true} {
		s := g.open("a")
		s.patience = 500 * time.Millisecond
		w.stalls.Store(stalls)
		w.down.Store(1<<20 + r.Int64N(8<<20))
		w.left.Store(4)
		w.broke.Store(0)
		got, err := all(t.Context(), s, "x/1")
		if err != nil || !bytes.Equal(got, b) || w.broke.Load() == 0 {
			t.Errorf("stalls %v: %d bytes, %v, after %d breaks", stalls, len(got), err, w.broke.Load())
		}
	}
	// With no byte between the breaks it is given up, and no one has canceled it.
	w.stalls.Store(false)
	w.down.Store(1)
	w.left.Store(1 << 30)
	if got, err := all(t.Context(), g.open("a"), "x/1"); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("nothing but breaks: %d bytes, %v", len(got), err)
	}
}

// TestSilentService: a service that sends nothing more, from the beginning or in the middle of an object, is an error that says so.
func TestSilentService(t *testing.T) {
	g := startGateway(t)
	must(t, g.open("a").Put(t.Context(), "x/1", bytes.NewReader(make([]byte, 32<<20))))
	w := g.wired()
	w.stalls.Store(true)
	s := g.open("a")
	s.patience = 200 * time.Millisecond
	r, err := s.Get(t.Context(), "x/1")
	must(t, err)
	_, err = io.ReadFull(r, make([]byte, 1<<20))
	must(t, err)
	w.down.Store(1)
	w.left.Store(1 << 30)
	if n, err := io.Copy(io.Discard, r); !errors.Is(err, errStalled) || errors.Is(err, context.Canceled) {
		t.Errorf("%d more bytes, %v", n, err)
	}
	must(t, r.Close())
	if got, err := all(t.Context(), s, "x/1"); !errors.Is(err, errStalled) || errors.Is(err, context.Canceled) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// TestSilentList: a service that accepts and says nothing does not hang a list.
func TestSilentList(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer ln.Close()
	t.Setenv("AWS_ENDPOINT_URL", "http://"+ln.Addr().String())
	s, err := Open("s3://" + bucket)
	must(t, err)
	s.patience = 200 * time.Millisecond
	ctx, done := context.WithTimeout(t.Context(), time.Minute)
	defer done()
	if list, err := s.List(ctx, ""); !errors.Is(err, errStalled) || errors.Is(err, context.Canceled) {
		t.Errorf("%d objects, %v", len(list), err)
	}
}

// TestFlippedUpload: the service refuses what was changed on the way.
func TestFlippedUpload(t *testing.T) {
	g := startGateway(t)
	w := g.wired()
	w.flips.Store(true)
	for _, size := range []int{1 << 20, 20 << 20} {
		s := g.open("a")
		w.up.Store(512 << 10)
		w.left.Store(1)
		w.broke.Store(0)
		b := bytes.Repeat([]byte("abc"), size/3)
		err := s.Put(t.Context(), "x/1", bytes.NewReader(b))
		if w.broke.Load() != 1 {
			t.Fatal("nothing was flipped")
		}
		if err == nil {
			t.Errorf("put: %d bytes with a flipped bit", size)
		}
		must(t, s.Put(t.Context(), "x/1", bytes.NewReader(b)))
		if got, err := all(t.Context(), s, "x/1"); err != nil || !bytes.Equal(got, b) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	}
}

// TestBrokenUpload: an upload is tried again when its connection breaks; one that cannot be has put nothing and leaves
// nothing.
func TestBrokenUpload(t *testing.T) {
	g, r := startGateway(t), chance.Rand(t)
	w := g.wired()
	for _, size := range []int{9 << 20, 40 << 20} {
		s, b := g.open("a"), make([]byte, size)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		w.up.Store(1<<20 + r.Int64N(4<<20))
		w.left.Store(2)
		w.broke.Store(0)
		must(t, s.Put(t.Context(), "x/1", bytes.NewReader(b)))
		if got, err := all(t.Context(), s, "x/1"); err != nil || !bytes.Equal(got, b) || w.broke.Load() != 2 {
			t.Errorf("%d bytes, %v, after %d breaks", len(got), err, w.broke.Load())
		}
		w.left.Store(1 << 30)
		if err := s.Put(t.Context(), "x/2", io.MultiReader(bytes.NewReader(b), bytes.NewReader(b))); err == nil {
			t.Error("put although every connection breaks")
		}
		w.left.Store(0)
		if got, err := all(t.Context(), s, "x/2"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		if left := g.uploads(s); left > 0 {
			t.Errorf("%d objects were begun and are not there", left)
		}
	}
}

// TestPartSizes: an object may have as many parts as S3 takes, and they have room for a large store.
func TestPartSizes(t *testing.T) {
	all := int64(0)
	for n := 1; n <= 10_000; n++ {
		all += partSize(n)
	}
	if partSize(1) < 5<<20 || all < 800<<30 {
		t.Errorf("%d bytes in all", all)
	}
}
