package db

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stavedb/stave/keydir"
)

// A survey looks at every key once: what there is of each type, how long the keys live, how large they are and where on
// disk they are. Expired keys that nobody has deleted yet are counted apart: reads hide them, but they take their space
// until then.

// SurveyOptions narrow a survey. The zero value works.
type SurveyOptions struct {
	// Biggest is how many of the biggest keys are listed. Default: 10.
	Biggest int
	// Prefixes is how many groups of keys are listed. Default: 20.
	Prefixes int
	// Progress is called now and then with how many keys have been seen. It is called with nothing locked. Default:
	// none.
	Progress func(keys int)
}

// Survey is what Store.Survey finds. Bytes are those of the newest records on disk; each is known within an eighth.
type Survey struct {
	Keys      int             `json:"keys"` // expired ones not included
	Bytes     int64           `json:"bytes"`
	Expired   int             `json:"expired"` // keys whose time has come, and that nobody has deleted yet
	Types     []SurveyType    `json:"types"`   // those that there are
	Sizes     []SurveySize    `json:"sizes"`
	Deadlines []SurveyTTL     `json:"deadlines"`
	Biggest   []SurveyKey     `json:"biggest"`
	Prefixes  []SurveyPrefix  `json:"prefixes"` // the largest first; the last one, without a name, has the rest
	Segments  []SurveySegment `json:"segments"` // those with records of keys
}

// SurveyType is about the keys of one type.
type SurveyType struct {
	Type     string `json:"type"`
	Keys     int    `json:"keys"`
	Elements int    `json:"elements"` // fields, members and entries
	Bytes    int64  `json:"bytes"`
	Memory   int64  `json:"memory"` // of the index
}

// SurveySize counts keys by how many bytes they take: at most Bytes, and more than the one before.
type SurveySize struct {
	Bytes int64 `json:"bytes"`
	Keys  int   `json:"keys"`
}

// SurveyTTL counts keys by the time that they have left: at most Left, and more than the one before. A Left of 0 stands
// for all that is longer; a negative one, for keys without a deadline.
type SurveyTTL struct {
	Left time.Duration `json:"left_ns"`
	Keys int           `json:"keys"`
}

// SurveyKey is one key.
type SurveyKey struct {
	Namespace int    `json:"namespace"`
	Key       string `json:"key"`
	Type      string `json:"type"`
	Elements  int    `json:"elements,omitempty"`
	Bytes     int64  `json:"bytes"`
}

// SurveyPrefix is about the keys whose names begin with Prefix, which ends with the first colon; a name without one is
// a prefix by itself.
type SurveyPrefix struct {
	Prefix string `json:"prefix"`
	Keys   int    `json:"keys"`
	Bytes  int64  `json:"bytes"`
}

// SurveySegment says what of a segment belongs to keys.
type SurveySegment struct {
	Segment      uint32 `json:"segment"`
	Records      int    `json:"records"`
	Bytes        int64  `json:"bytes"`
	ExpiredBytes int64  `json:"expired_bytes"` // of these, those of expired keys
}

// maxPrefixes bounds the memory for groups of keys: keys with prefixes beyond it are counted with the rest.
const maxPrefixes = 10_000

// surveyLives are the bounds of Survey.Deadlines.
var surveyLives = []time.Duration{time.Hour, 24 * time.Hour, 30 * 24 * time.Hour, 0, -1}

// Survey looks at every key of every namespace. Writers go on, and a key that changes meanwhile is counted before or
// after; one stripe of keys is locked for reading at a time. It fails with the error of a key that cannot be read, or
// the context's. O(all records), without reading values.
func (s *Store) Survey(ctx context.Context, o SurveyOptions) (Survey, error) {
	w := &surveyor{ctx: ctx, options: o, types: map[keydir.Type]*SurveyType{}, prefixes: map[string]*SurveyPrefix{}, segments: map[uint32]*SurveySegment{}}
	w.options.Biggest, w.options.Prefixes = cmp.Or(o.Biggest, 10), cmp.Or(o.Prefixes, 20)
	w.Types, w.Sizes, w.Biggest, w.Prefixes, w.Segments = []SurveyType{}, []SurveySize{}, []SurveyKey{}, []SurveyPrefix{}, []SurveySegment{}
	for _, left := range surveyLives {
		w.Deadlines = append(w.Deadlines, SurveyTTL{Left: left})
	}
	for _, ns := range s.base.Namespaces() {
		if s.hidesNamespace(ns) {
			continue
		}
		for stripe := range keydir.Stripes {
			if err := w.stripe(s, ns, stripe); err != nil {
				return Survey{}, err
			}
			if o.Progress != nil {
				o.Progress(w.Keys + w.Expired)
			}
		}
	}
	return w.finish(), nil
}

// A surveyor is a survey under way.
type surveyor struct {
	Survey
	ctx      context.Context
	options  SurveyOptions
	types    map[keydir.Type]*SurveyType
	prefixes map[string]*SurveyPrefix
	rest     SurveyPrefix // of prefixes beyond maxPrefixes
	sizes    [64]int      // by the binary logarithm
	segments map[uint32]*SurveySegment
}

// stripe looks at the keys of one stripe.
func (w *surveyor) stripe(s *Store, ns, stripe int) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	first, err := s.beginStripe(stripe)
	if err != nil {
		return err
	}
	defer first.recycle()
	t := &first.Tx
	space := s.base.Space(ns)
	var failed error
	err = t.base.EachKey(ns, stripe, 0, func(_ uint64, name []byte, typ keydir.Type) bool {
		key := string(name)
		ms, timed := s.deadlines.Get(space, key)
		gone := timed && t.due(ms)
		if !gone && typ == keydir.Hash {
			gone, failed = t.fieldsGone(ns, space, key)
		}
		left := time.Duration(-1)
		if timed && !gone {
			left = time.Duration(min(ms-t.now(), int64(1<<62)/int64(time.Millisecond))) * time.Millisecond
		}
		if failed == nil {
			failed = w.key(t, ns, key, typ.Public(), left, gone)
		}
		if failed == nil && (w.Keys+w.Expired)%1024 == 0 {
			failed = w.ctx.Err()
		}
		return failed == nil
	})
	return t.end(cmp.Or(failed, err))
}

// key counts one key.
func (w *surveyor) key(t *Tx, ns int, key string, typ Type, left time.Duration, gone bool) error {
	u, ok, err := t.base.UsageByPlace(ns, key, func(id uint32, bytes int64) {
		sg := w.segments[id]
		if sg == nil {
			sg = &SurveySegment{Segment: id}
			w.segments[id] = sg
		}
		sg.Records++
		sg.Bytes += bytes
		if gone {
			sg.ExpiredBytes += bytes
		}
	})
	switch {
	case err != nil || !ok:
		return err
	case gone:
		w.Expired++
		return nil
	}
	w.Keys++
	w.Bytes += u.Disk
	of := w.types[typ]
	if of == nil {
		of = &SurveyType{Type: typ.String()}
		w.types[typ] = of
	}
	of.Keys, of.Elements, of.Bytes, of.Memory = of.Keys+1, of.Elements+u.Elements, of.Bytes+u.Disk, of.Memory+u.Memory
	class := 0
	for u.Disk > 1<<class {
		class++
	}
	w.sizes[class]++
	w.deadline(left)
	w.prefix(key, u.Disk)
	w.big(SurveyKey{ns, key, typ.String(), u.Elements, u.Disk})
	return nil
}

func (w *surveyor) deadline(left time.Duration) {
	for i, bound := range surveyLives {
		if left < 0 && bound < 0 || left >= 0 && (left <= bound || bound == 0) {
			w.Deadlines[i].Keys++
			return
		}
	}
}

func (w *surveyor) prefix(key string, bytes int64) {
	name := key
	if i := strings.IndexByte(key, ':'); i >= 0 {
		name = key[:i+1]
	}
	of := w.prefixes[name]
	switch {
	case of == nil && len(w.prefixes) < maxPrefixes:
		of = &SurveyPrefix{Prefix: strings.Clone(name)}
		w.prefixes[of.Prefix] = of
	case of == nil:
		of = &w.rest
	}
	of.Keys, of.Bytes = of.Keys+1, of.Bytes+bytes
}

// big keeps the biggest keys, in order. Of two that are as big the one that comes first in the order of names is kept,
// so that the same store has the same list.
func (w *surveyor) big(k SurveyKey) {
	order := func(a, b SurveyKey) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Key, b.Key))
	}
	if n := len(w.Biggest); n >= w.options.Biggest && (n == 0 || order(k, w.Biggest[n-1]) > 0) {
		return
	}
	at, _ := slices.BinarySearchFunc(w.Biggest, k, order)
	w.Biggest = slices.Insert(w.Biggest, at, k)
	w.Biggest = w.Biggest[:min(len(w.Biggest), w.options.Biggest)]
}

// finish puts what was counted in order.
func (w *surveyor) finish() Survey {
	for _, typ := range slices.Sorted(maps.Keys(w.types)) {
		w.Types = append(w.Types, *w.types[typ])
	}
	for class, keys := range w.sizes {
		if keys > 0 {
			w.Sizes = append(w.Sizes, SurveySize{1 << class, keys})
		}
	}
	groups := slices.Collect(maps.Values(w.prefixes))
	slices.SortFunc(groups, func(a, b *SurveyPrefix) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Prefix, b.Prefix))
	})
	for i, g := range groups {
		if i < w.options.Prefixes {
			w.Prefixes = append(w.Prefixes, *g)
		} else {
			w.rest.Keys, w.rest.Bytes = w.rest.Keys+g.Keys, w.rest.Bytes+g.Bytes
		}
	}
	if w.rest.Keys > 0 {
		w.Prefixes = append(w.Prefixes, w.rest)
	}
	for _, id := range slices.Sorted(maps.Keys(w.segments)) {
		w.Segments = append(w.Segments, *w.segments[id])
	}
	return w.Survey
}
