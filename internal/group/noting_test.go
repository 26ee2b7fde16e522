package group_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stavedb/stave/internal/group"
)

// register is a service whose record the test sets.
type register struct{ is group.Versioned }

func (r *register) Read(context.Context) (group.Versioned, error) { return r.is, nil }
func (r *register) Swap(_ context.Context, s group.Swap) (group.Versioned, error) {
	if s.If == r.is.Version {
		r.is = group.Versioned{Version: s.If + 1, Record: s.Record}
	}
	return r.is, nil
}
func (r *register) Watch(_ context.Context, fn func(group.Versioned)) { fn(r.is) }

func record(term uint64, ids string) group.Record {
	r := group.Record{Term: term, Primary: ids[:1]}
	for _, id := range ids {
		r.InSync = append(r.InSync, group.Member{ID: string(id)})
	}
	return r
}

// TestNoting: a record is noted before the member learns of it, and a swap before it is asked for; after an error there is neither.
func TestNoting(t *testing.T) {
	ctx := t.Context()
	var noted group.Noted
	var fails error
	service := new(register)
	start := func() group.Service {
		return group.Noting(service, noted, func(n group.Noted) error {
			if fails == nil {
				noted = n
			}
			return fails
		})
	}
	s := start()
	learned := func() (v group.Versioned) {
		s.Watch(ctx, func(w group.Versioned) { v = w })
		return v
	}
	is := func(what, want string) {
		t.Helper()
		if got := noted.String(); got != want {
			t.Errorf("%s: noted is %s, not %s", what, got, want)
		}
	}
	known := func(version int64, term uint64) string {
		return fmt.Sprintf(`{"group":"","known":{"version":%d,"term":%d,"primary":"a","in_sync":[{"id":"a","incarnation":0}]}`, version, term)
	}
	tried := func(version int64, term uint64) string {
		return fmt.Sprintf(`,"tried":{"if":%d,"record":{"term":%d,"primary":"a","in_sync":[{"id":"a","incarnation":0}]}}`, version, term)
	}
	if v, err := s.Read(ctx); v.Version != 0 || err != nil {
		t.Errorf("%+v, %v", v, err)
	}

	fails = errors.New("no room")
	if v, err := s.Swap(ctx, group.Swap{Record: record(1, "a")}); !errors.Is(err, fails) || service.is.Version != 0 {
		t.Errorf("%+v, %v, and the service has %+v", v, err, service.is)
	}
	fails = nil
	if v, err := s.Swap(ctx, group.Swap{Record: record(1, "a")}); v.Version != 1 || err != nil {
		t.Errorf("%+v, %v", v, err)
	}
	is("it has begun", known(1, 1)+"}")

	lost := &lossy{register: service}
	s = group.Noting(lost, noted, func(n group.Noted) error { noted = n; return nil })
	if _, err := s.Swap(ctx, group.Swap{If: 1, Record: record(2, "a")}); err == nil {
		t.Error("there is an answer")
	}
	is("a swap without an answer", known(1, 1)+tried(1, 2)+"}")

	s = start()
	service.is = group.Versioned{Version: 2, Record: record(2, "a")}
	if v := learned(); v.Version != 2 || noted.Known.Version != 1 {
		t.Errorf("before it has read: %+v", v)
	}
	fails = errors.New("no room")
	if v, err := s.Read(ctx); !errors.Is(err, fails) {
		t.Errorf("%+v, %v", v, err)
	}
	fails = nil
	if v, err := s.Read(ctx); v.Version != 2 || err != nil {
		t.Errorf("%+v, %v", v, err)
	}
	is("it has read", known(2, 2)+"}")
	service.is = group.Versioned{Version: 3, Record: record(2, "a")}
	fails = errors.New("no room")
	if v := learned(); v.Version != 0 {
		t.Errorf("it learns %+v, which could not be noted", v)
	}
	fails = nil
	if v := learned(); v.Version != 3 {
		t.Errorf("it learns %+v", v)
	}
	is("it has watched", known(3, 2)+"}")
	service.is = group.Versioned{Version: 1, Record: record(1, "a")}
	if v := learned(); v.Version != 1 {
		t.Errorf("an old record that a watch had is %+v", v)
	}
	is("an old record was watched", known(3, 2)+"}")

	s = start()
	var older *group.OlderRecordError
	if v, err := s.Read(ctx); !errors.As(err, &older) || !strings.Contains(err.Error(), "restored from a backup") {
		t.Errorf("an old record at the start: %+v, %v", v, err)
	}
	service.is = group.Versioned{}
	if v, err := s.Read(ctx); !errors.As(err, &older) || !strings.Contains(err.Error(), "is gone") {
		t.Errorf("no record any more: %+v, %v", v, err)
	}
	service.is = group.Versioned{Version: 1, Record: record(3, "a")}
	if v, err := s.Read(ctx); v.Version != 1 || err != nil {
		t.Errorf("a recovered record: %+v, %v", v, err)
	}
	is("the record was made anew", known(1, 3)+"}")
}

// lossy gives no answers to swaps.
type lossy struct{ *register }

func (lossy) Swap(context.Context, group.Swap) (group.Versioned, error) {
	return group.Versioned{}, errors.New("no answer")
}

// TestRecover: those in sync by the newest record, and by a swap that may have been carried out, are needed.
func TestRecover(t *testing.T) {
	witness := func(id string, incarnation uint64, known group.Versioned, tried *group.Swap) group.Witness {
		return group.Witness{Member: group.Member{ID: id, Incarnation: incarnation}, Noted: group.Noted{Known: known, Tried: tried}}
	}
	old := group.Versioned{Version: 9, Record: record(2, "abc")}
	now := group.Versioned{Version: 1, Record: record(3, "ab")} // another etcd
	joins := &group.Swap{If: 1, Record: record(3, "abd")}
	for _, c := range []struct {
		what string
		from []group.Witness
		lost string
		want string // "": the record has a and b in sync
	}{
		{"nobody knows anything", []group.Witness{witness("a", 0, group.Versioned{}, nil)}, "", "--bootstrap"},
		{"all are there", []group.Witness{witness("c", 0, old, nil), witness("a", 0, now, nil), witness("b", 0, old, nil)}, "", ""},
		{"one of them is not", []group.Witness{witness("a", 0, now, nil), witness("c", 0, old, nil)}, "", "b is missing"},
		{"it is lost", []group.Witness{witness("a", 0, now, nil), witness("c", 0, old, nil)}, "b", "a"},
		{"the primary is lost", []group.Witness{witness("b", 0, now, nil), witness("c", 0, old, nil)}, "a", "b"},
		{"one has lost its power", []group.Witness{witness("a", 0, now, nil), witness("b", 1, now, nil)}, "", "b may have lost"},
		{"another one may have joined", []group.Witness{witness("a", 0, now, joins), witness("b", 0, now, nil)}, "", "d is missing"},
		{"it has not, as it says", []group.Witness{witness("a", 0, now, joins), witness("b", 0, now, nil), witness("d", 0, old, nil)}, "", ""},
		{"a swap of an old record was tried", []group.Witness{witness("a", 0, now, nil), witness("b", 0, old, &group.Swap{If: 9, Record: record(2, "ad")})}, "", ""},
		{"all are lost", []group.Witness{witness("c", 0, now, nil)}, "ab", "nobody is left"},
	} {
		r, err := group.Recover(c.from, strings.Split(c.lost, "")...)
		switch {
		case len(c.want) > 1:
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %+v, %v", c.what, r, err)
			}
		case c.want != "":
			if err != nil || r.Primary != c.want || len(r.InSync) != 1 || r.Term != 4 {
				t.Errorf("%s: %+v, %v", c.what, r, err)
			}
		case err != nil || r.Primary != "a" || len(r.InSync) != 2 || r.Term != 4:
			t.Errorf("%s: %+v, %v", c.what, r, err)
		}
	}
}
