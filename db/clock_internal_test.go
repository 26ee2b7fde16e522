package db

import (
	"errors"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
)

// TestClockNotSettled: while what was shown as expired cannot be deleted, it stays hidden, and a write that would be hidden with
// it is refused. All else works, by the wall's clock, and once the deletes succeed so does that.
func TestClockNotSettled(t *testing.T) {
	s, err := Open("d", seam.With(&Options{ExpireEvery: -1}, seam.Options{FS: vfs.NewMem()}))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.String("gone").Put(nil, TTL(time.Minute)); err != nil {
		t.Fatal(err)
	}
	s.show(time.Now().Add(time.Hour).UnixMilli()) // and the clock was put back since
	s.clock.retry.Failed(time.Hour, time.Hour, errors.New("as on a full disk"))
	refused := map[string]error{
		"put":    s.String("k").Put(nil, TTL(time.Minute)),
		"update": s.Update(func(tx *Tx) error { return tx.String("k").Put(nil, ExpireAt(time.Now().Add(time.Minute))) }),
		"field":  s.Hash("h").PutWith([]Field{{Name: "f"}}, TTL(time.Minute)),
	}
	for name, err := range refused {
		if !errors.Is(err, ErrClock) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n, err := s.Keyspace().Exists("gone", "k", "h"); n != 0 || err != nil {
		t.Errorf("%d of the keys are there, %v", n, err)
	}
	if err := errors.Join(s.String("plain").Put(nil), s.String("later").Put(nil, TTL(2*time.Hour))); err != nil {
		t.Error(err)
	}
	if ttl, err := s.Key("later").TTL(); err != nil || ttl < 119*time.Minute || ttl > 2*time.Hour {
		t.Errorf("TTL is %v, %v", ttl, err)
	}
	s.clock.retry.Worked()
	if err := s.String("k").Put(nil, TTL(time.Minute)); err != nil {
		t.Error(err)
	}
	if n, err := s.Keyspace().Exists("gone", "k", "later"); n != 2 || err != nil {
		t.Errorf("%d of the keys are there, %v", n, err)
	}
}
