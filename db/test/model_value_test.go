package db_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/serverside"
)

// modelNamespaces is how many namespaces a model has.
const modelNamespaces = 4

// modelValue is what a key holds, in the plainest form.
type modelValue struct {
	typ      db.Type
	str      string
	hash     map[string]string
	list     []string
	set      map[string]bool
	zset     map[string]float64
	stream   *modelStream
	deadline int64            // Unix milliseconds; 0: none
	until    map[string]int64 // deadlines of fields
}

func (v *modelValue) clone() *modelValue {
	c := *v
	c.hash, c.list, c.set, c.zset = maps.Clone(v.hash), slices.Clone(v.list), maps.Clone(v.set), maps.Clone(v.zset)
	c.until, c.stream = maps.Clone(v.until), v.stream.clone()
	return &c
}

func (v *modelValue) len() int {
	if v == nil {
		return 0
	}
	return len(v.hash) + len(v.list) + len(v.set) + len(v.zset) + v.stream.len()
}

// modelSpace is one namespace.
type modelSpace map[string]*modelValue

// model is what a store should hold. The last space has libraries, as strings.
type model [modelNamespaces + 1]modelSpace

const modelLibraries = modelNamespaces

func newModel() *model {
	m := new(model)
	for ns := range m {
		m[ns] = modelSpace{}
	}
	return m
}

func (m *model) clone() *model {
	c := newModel()
	for ns := range m {
		for key, v := range m[ns] {
			c[ns][key] = v.clone()
		}
	}
	return c
}

// expire drops the fields and keys whose time has come.
func (m *model) expire(now int64) {
	for ns := range m {
		maps.DeleteFunc(m[ns], func(_ string, v *modelValue) bool {
			v.expireFields(now)
			return v.deadline != 0 && v.deadline <= now || v.typ == db.TypeHash && len(v.hash) == 0
		})
	}
}

// scored returns the members of a sorted set in its order.
func (v *modelValue) scored() []db.Scored {
	list := []db.Scored{}
	if v == nil {
		return list
	}
	for member, score := range v.zset {
		list = append(list, db.Scored{Member: member, Score: score})
	}
	slices.SortFunc(list, func(a, b db.Scored) int {
		return cmp.Or(cmp.Compare(a.Score, b.Score), strings.Compare(a.Member, b.Member))
	})
	return list
}

// String is one line a key, in order, with everything about it.
func (m *model) String() string {
	var b strings.Builder
	for ns := range m {
		for _, key := range slices.Sorted(maps.Keys(m[ns])) {
			v := m[ns][key]
			fmt.Fprintf(&b, "%d %q %v", ns, key, v.typ)
			if v.deadline != 0 {
				fmt.Fprintf(&b, " until %d", v.deadline)
			}
			b.WriteByte(':')
			v.describe(&b)
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func (v *modelValue) describe(b *strings.Builder) {
	switch v.typ {
	case db.TypeString:
		fmt.Fprintf(b, " %q", v.str)
	case db.TypeHash:
		for _, field := range slices.Sorted(maps.Keys(v.hash)) {
			fmt.Fprintf(b, " %q=%q", field, v.hash[field])
			if ms, ok := v.until[field]; ok {
				fmt.Fprintf(b, " until %d", ms)
			}
		}
	case db.TypeList:
		for _, elem := range v.list {
			fmt.Fprintf(b, " %q", elem)
		}
	case db.TypeSet:
		for _, member := range slices.Sorted(maps.Keys(v.set)) {
			fmt.Fprintf(b, " %q", member)
		}
	case db.TypeSortedSet:
		for _, s := range v.scored() {
			fmt.Fprintf(b, " %v=%q", s.Score, s.Member)
		}
	case db.TypeStream:
		v.stream.describe(b)
	}
}

// readModel reads everything that a store holds, in one View.
func readModel(s *db.Store) (*model, error) {
	m := newModel()
	err := s.View(func(tx *db.Tx) error {
		for ns := range modelNamespaces {
			tx, err := tx.Use(ns)
			if err != nil {
				return err
			}
			for k, err := range tx.Keyspace().All() {
				if err != nil {
					return err
				}
				if m[ns][k.Key] != nil {
					return fmt.Errorf("namespace %d has key %q twice", ns, k.Key)
				}
				if m[ns][k.Key], err = readValue(tx, k.Key, k.Type); err != nil {
					return fmt.Errorf("namespace %d, %v %q: %w", ns, k.Type, k.Key, err)
				}
			}
		}
		libraries, err := serverside.DB.Libraries(s) // of the same moment: libraries are put with all keys locked
		for name, text := range libraries {
			m[modelLibraries][name] = &modelValue{typ: db.TypeString, str: text}
		}
		return err
	})
	return m, err
}

// readValue reads what one key holds, in a way that notices counts, orders and
// cursors that disagree.
func readValue(tx *db.Tx, key string, typ db.Type) (*modelValue, error) {
	v := &modelValue{typ: typ}
	if got, err := tx.Key(key).Type(); err != nil || got != typ {
		return nil, fmt.Errorf("type is %v, the scan says %v (%w)", got, typ, err)
	}
	at, err := tx.Key(key).Deadline()
	if err != nil {
		return nil, err
	}
	if !at.IsZero() {
		v.deadline = at.UnixMilli()
	}
	n := 0
	switch typ {
	case db.TypeString:
		value, err := tx.String(key).Get()
		v.str = string(value)
		return v, err
	case db.TypeHash:
		v.hash = map[string]string{}
		for f, err := range tx.Hash(key).All() {
			if err != nil {
				return nil, err
			}
			v.hash[f.Name] = string(f.Value)
		}
		if v.until, err = readFieldDeadlines(tx.Hash(key), v.hash); err == nil {
			n, err = tx.Hash(key).Len()
		}
	case db.TypeList:
		for value, err := range tx.List(key).All() {
			if err != nil {
				return nil, err
			}
			v.list = append(v.list, string(value))
		}
		n, err = tx.List(key).Len()
	case db.TypeSet:
		v.set = map[string]bool{}
		for member, err := range tx.Set(key).All() {
			if err != nil {
				return nil, err
			}
			v.set[member] = true
		}
		n, err = tx.Set(key).Len()
	case db.TypeSortedSet:
		n, err = readScored(tx.SortedSet(key), v)
	case db.TypeStream:
		v.stream, n, err = readStream(tx.Stream(key))
	}
	if err == nil && (n != v.len() || n == 0 && typ != db.TypeStream) {
		err = fmt.Errorf("says that it has %d elements, has %d", n, v.len())
	}
	return v, err
}

func readScored(z db.SortedSet, v *modelValue) (int, error) {
	v.zset = map[string]float64{}
	var list []db.Scored
	for m, err := range z.All(db.AllRanks) {
		if err != nil {
			return 0, err
		}
		list = append(list, m)
		v.zset[m.Member] = m.Score
	}
	if !slices.Equal(list, v.scored()) {
		return 0, errors.New("out of order")
	}
	for i, s := range list {
		if rank, score, err := z.RankScore(s.Member, false); err != nil || rank != i || score != s.Score {
			return 0, fmt.Errorf("member %q: rank %d and score %v (%w), want %d and %v", s.Member, rank, score, err, i, s.Score)
		}
	}
	return z.Len()
}

// differences lists the lines that only one of two texts has.
func differences(got, want string) string {
	has := map[string]int{}
	for line := range strings.Lines(want) {
		has[line]++
	}
	var b strings.Builder
	for line := range strings.Lines(got) {
		if has[line] > 0 {
			has[line]--
			continue
		}
		fmt.Fprintf(&b, "  has     %.600s", line)
	}
	for line := range strings.Lines(want) {
		if has[line] > 0 {
			has[line]--
			fmt.Fprintf(&b, "  misses  %.600s", line)
		}
	}
	return b.String()
}
