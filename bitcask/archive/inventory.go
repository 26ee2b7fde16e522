package archive

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

// A Moment is a state of the store between two commits.
type Moment struct {
	Generation string    `json:"generation"`
	Sequence   uint64    `json:"sequence"` // of its newest record
	Time       time.Time `json:"time"`     // when the log was there, by the clock of that machine
}

func (m *Moment) String() string {
	if m == nil {
		return "none"
	}
	return fmt.Sprintf("sequence %d (%s)", m.Sequence, m.Time.UTC().Format("2006-01-02T15:04:05.000Z"))
}

// A Span is the moments from First to Last, each commit between which can be restored. Spans of one generation have a gap
// between them only if objects are missing.
type Span struct {
	Store       string `json:"store_id"`
	First, Last Moment
	Bases       int   `json:"bases"`
	Bytes       int64 `json:"bytes"` // of its objects, but for the data of bases

	bases, logs []id // in order of sequence; the logs follow each other
	beyond      []id // the logs that follow a gap after the last span of a generation
}

// inventory is the objects of one generation, in order of sequence.
type inventory struct {
	id          // of the generation
	bases, logs []id
	data        []id
	sizes       map[id]int64
	bytes       int64 // of all
	since       int64 // bytes of the logs after the newest base
}

// generations reads which objects there are, by generation, oldest first. Objects with other names are left out.
func generations(ctx context.Context, from Store) (all []*inventory, err error) {
	objects, err := from.List(ctx, "")
	if err != nil {
		return nil, err
	}
	byName := map[string]*inventory{}
	for _, object := range objects {
		o, ok := parseName(object.Name)
		if !ok {
			continue
		}
		name := generationName(o.generation, o.store)
		inv := byName[name]
		if inv == nil {
			inv = &inventory{id: id{generation: o.generation, store: o.store}, sizes: map[id]int64{}}
			byName[name] = inv
			all = append(all, inv)
		}
		inv.add(o, object.Size)
	}
	for _, inv := range all {
		inv.sort()
	}
	slices.SortFunc(all, func(a, b *inventory) int {
		return cmp.Or(cmp.Compare(a.generation, b.generation), slices.Compare(a.store[:], b.store[:]))
	})
	return all, nil
}

func (inv *inventory) add(o id, size int64) {
	list := map[kind]*[]id{kindLog: &inv.logs, kindBase: &inv.bases, kindData: &inv.data}[o.kind]
	*list = append(*list, o)
	inv.bytes += size
	inv.sizes[o] = size
}

// without takes objects out.
func (inv *inventory) without(gone map[id]bool) {
	for _, list := range []*[]id{&inv.logs, &inv.bases, &inv.data} {
		*list = slices.DeleteFunc(*list, func(o id) bool {
			if gone[o] {
				inv.bytes -= inv.sizes[o]
				delete(inv.sizes, o)
			}
			return gone[o]
		})
	}
}

func (inv *inventory) sort() {
	byLast := func(a, b id) int { return cmp.Or(cmp.Compare(a.last, b.last), cmp.Compare(a.first, b.first)) }
	slices.SortFunc(inv.logs, byLast)
	slices.SortFunc(inv.bases, byLast)
	inv.since = 0
	for _, o := range slices.Backward(inv.logs) {
		if n := len(inv.bases); n > 0 && o.last <= inv.bases[n-1].last {
			break
		}
		inv.since += inv.sizes[o]
	}
}

// name is that of the generation.
func (inv *inventory) name() string { return generationName(inv.generation, inv.store) }

func (inv *inventory) moment(sequence uint64, ms int64) Moment {
	return Moment{Generation: inv.name(), Sequence: sequence, Time: time.UnixMilli(ms)}
}

// spans are those of the generation, in order.
func (inv *inventory) spans() (list []*Span) {
	bases, logs := inv.bases, inv.logs
	for len(bases) > 0 {
		base := bases[0]
		for len(logs) > 0 && logs[0].last <= base.last { // before the base, or as far as it
			logs = logs[1:]
		}
		sp := &Span{Store: fmt.Sprintf("%x", inv.store), First: inv.moment(base.last, base.from), Last: inv.moment(base.last, base.from)}
		for len(logs) > 0 && logs[0].first <= sp.Last.Sequence+1 {
			o := logs[0]
			sp.Last.Sequence = o.last
			if o.to != 0 {
				sp.Last.Time = time.UnixMilli(o.to)
			}
			sp.logs, logs = append(sp.logs, o), logs[1:]
			sp.Bytes += inv.sizes[o]
		}
		for len(bases) > 0 && bases[0].last <= sp.Last.Sequence {
			sp.bases, bases = append(sp.bases, bases[0]), bases[1:]
		}
		sp.Bases = len(sp.bases)
		if list = append(list, sp); len(bases) == 0 {
			sp.beyond = logs
		}
	}
	return list
}

// settled lists the generations until a list can be believed: alongside compaction a list may lack both the objects that were
// deleted and the one that took their place, which was put before, so that the next list has it. A list is believed if each
// generation is one span that reaches as far as in the lists before, or if nothing has changed since the last one.
func settled(ctx context.Context, from Store) (all []*inventory, err error) {
	ends := map[string]uint64{} // how far the log of a generation was before
	for n := range 2 + mostLists {
		before := all
		if all, err = generations(ctx, from); err != nil {
			return nil, err
		}
		whole := true
		for _, inv := range all {
			spans, end := inv.spans(), uint64(0)
			if last := len(spans) - 1; last >= 0 {
				end = spans[last].Last.Sequence
			}
			whole = whole && len(spans) == 1 && len(spans[0].beyond) == 0 && end >= ends[inv.name()]
			for _, o := range slices.Concat(inv.logs, inv.bases) {
				ends[inv.name()] = max(ends[inv.name()], o.last)
			}
		}
		same := slices.EqualFunc(before, all, func(a, b *inventory) bool { return maps.Equal(a.sizes, b.sizes) })
		if n > 0 && (whole || same) {
			break
		}
	}
	return all, nil
}

// Spans are what can be restored, oldest first. Nothing but the names of objects is read: what is damaged is found by
// Restore.
func Spans(ctx context.Context, from Store) (list []*Span, err error) {
	all, err := settled(ctx, from)
	for _, inv := range all {
		list = append(list, inv.spans()...)
	}
	return list, err
}

// A Target says which moment is wanted. With neither Sequence nor Time it is the newest one.
type Target struct {
	// Store is the id of the store, as Span.Store has it. It is needed if the archive has moments of several stores.
	Store string
	// Sequence is the number of a record. The moment is that of the last commit up to it.
	Sequence uint64
	// Time is a time by the clock of the machine that wrote the archive. The moment is the last one at which that clock
	// showed this time, or an earlier one: where it was put back, the later of two.
	Time time.Time
}

func (t Target) String() string {
	switch {
	case t.Sequence != 0:
		return fmt.Sprint("sequence ", t.Sequence)
	case !t.Time.IsZero():
		return t.Time.Format(time.RFC3339Nano)
	}
	return "the newest moment"
}

// An UnrestorableError says that a moment cannot be restored, and which ones next to it can.
type UnrestorableError struct {
	Want          string
	Object        string  // what is damaged, or missing; "": the archive never had it
	Before, After *Moment // the nearest restorable moments; nil: none
	Err           error   // what is wrong with the object; nil: it is missing
}

func (e *UnrestorableError) Error() string {
	why := "the archive does not have it"
	switch {
	case e.Err != nil:
		why = e.Err.Error()
	case e.Object != "":
		why = e.Object + " is missing"
	}
	return fmt.Sprintf("%s cannot be restored: %s; the nearest moments: %v before it, %v after it", e.Want, why, e.Before, e.After)
}

// Unwrap is what is wrong with the object.
func (e *UnrestorableError) Unwrap() error { return e.Err }

// A StoresError says that the store is not clear: the archive has moments of several ones, and Target.Store names none, or it
// has none of the wanted one.
type StoresError struct {
	Want string // Target.Store
	Last []Span // the newest span of each store
}

func (e *StoresError) Error() string {
	text := "the archive has moments of several stores"
	if e.Want != "" {
		text = "the archive has no moment of store " + e.Want
	}
	for i, sp := range e.Last {
		text += fmt.Sprintf("%s %s (last at %s)", []string{":", ","}[min(i, 1)], sp.Store, sp.Last.Time.UTC().Format(time.RFC3339))
	}
	return text
}

// ofOneStore are the spans of the wanted store.
func ofOneStore(spans []*Span, want string) (list []*Span, err error) {
	e := &StoresError{Want: want}
	for _, sp := range spans {
		if sp.Store == want {
			list = append(list, sp)
		}
		e.Last = slices.DeleteFunc(e.Last, func(other Span) bool { return other.Store == sp.Store })
		e.Last = append(e.Last, *sp)
	}
	switch {
	case want == "" && len(e.Last) <= 1:
		return spans, nil
	case len(list) == 0:
		return nil, e
	}
	return list, nil
}

// choice is what Restore reads: a base, and the logs after it.
type choice struct {
	span *Span
	base id
	logs []id
	upTo uint64
	time int64 // 0: that of the marks up to there
}

// choose finds a moment. By sequence the newest generation counts that has it.
func choose(ctx context.Context, from Store, t Target) (c choice, err error) {
	spans, err := Spans(ctx, from)
	if err == nil {
		spans, err = ofOneStore(spans, t.Store)
	}
	if err != nil {
		return c, err
	}
	if len(spans) == 0 {
		return c, &UnrestorableError{Want: t.String()}
	}
	switch {
	case t.Sequence != 0:
		for i, sp := range slices.Backward(spans) {
			if sp.First.Sequence <= t.Sequence && t.Sequence <= sp.Last.Sequence {
				return sp.choose(t.Sequence), nil
			}
			if n := len(sp.beyond); n > 0 && sp.Last.Sequence < t.Sequence && t.Sequence <= sp.beyond[n-1].last {
				return c, lost(t, spans[i:])
			}
		}
		return c, outside(t, spans, func(m *Moment) int { return cmp.Compare(m.Sequence, t.Sequence) })
	case t.Time.IsZero():
		sp := spans[len(spans)-1]
		if len(sp.beyond) > 0 {
			return c, lost(t, []*Span{sp})
		}
		return sp.choose(sp.Last.Sequence), nil
	}
	return chooseTime(ctx, from, spans, t)
}

// choose is the choice of a sequence number within a span.
func (sp *Span) choose(upTo uint64) choice {
	c := choice{span: sp, upTo: upTo}
	for _, base := range sp.bases {
		if base.last <= upTo {
			c.base = base
		}
	}
	for _, o := range sp.logs {
		if o.last > c.base.last && o.first <= upTo && upTo > c.base.last {
			c.logs = append(c.logs, o)
		}
	}
	return c
}

// chooseTime is the last moment at a time or before it. After the end of a span, and before the next one begins, commits
// are missing.
func chooseTime(ctx context.Context, from Store, spans []*Span, t Target) (c choice, err error) {
	ms := t.Time.UnixMilli()
	for i, sp := range slices.Backward(spans) {
		seq, at, err := sp.last(ctx, from, ms)
		if err != nil {
			return c, &UnrestorableError{Want: t.String(), Object: "", Err: err}
		}
		if slices.ContainsFunc(sp.beyond, func(o id) bool { return o.from != 0 && o.from <= ms }) || len(sp.beyond) > 0 && ms > sp.Last.Time.UnixMilli() {
			return c, lost(t, spans[i:])
		}
		if at == 0 {
			continue
		}
		if i+1 < len(spans) && ms > sp.Last.Time.UnixMilli() {
			if next := spans[i+1]; next.First.Sequence != sp.Last.Sequence {
				return c, &UnrestorableError{Want: t.String(), Before: &sp.Last, After: &next.First}
			}
		}
		c = sp.choose(seq)
		c.time = at
		return c, nil
	}
	return c, outside(t, spans, func(m *Moment) int { return m.Time.Compare(t.Time) })
}

// last is the last moment of the span with a time of up to ms; at is 0 if there is none.
func (sp *Span) last(ctx context.Context, from Store, ms int64) (seq uint64, at int64, err error) {
	for _, base := range sp.bases {
		if base.from <= ms {
			seq, at = base.last, max(base.from, 1)
		}
	}
	for _, o := range slices.Backward(sp.logs) {
		if o.from == 0 || o.from > ms || o.last < seq {
			continue
		}
		err := readLog(ctx, from, o, &visitor{mark: func(m mark) error {
			if m.time <= ms && m.sequence >= seq && m.sequence >= sp.First.Sequence {
				seq, at = m.sequence, max(m.time, 1)
			}
			return nil
		}})
		return seq, at, err
	}
	return seq, at, nil
}

// lost says that a moment is after the end of the first span, where log objects are missing and others are not.
func lost(t Target, spans []*Span) error {
	e := &UnrestorableError{Want: t.String(), Before: &spans[0].Last, Object: missing(&spans[0].Last)}
	if len(spans) > 1 {
		e.After = &spans[1].First
	}
	return e
}

// missing names the log objects after a moment.
func missing(m *Moment) string {
	return fmt.Sprintf("%s: the log after sequence %d", m.Generation, m.Sequence)
}

// outside says that a moment is in no span; order compares a moment with the wanted one.
func outside(t Target, spans []*Span, order func(*Moment) int) error {
	e := &UnrestorableError{Want: t.String()}
	for _, sp := range spans {
		for _, m := range []*Moment{&sp.First, &sp.Last} {
			switch {
			case order(m) < 0 && (e.Before == nil || order(m) >= order(e.Before)):
				e.Before = m
			case order(m) > 0 && e.After == nil:
				e.After = m
			}
		}
	}
	if e.Before != nil && e.After != nil && e.Before.Generation == e.After.Generation {
		e.Object = missing(e.Before)
	}
	return e
}

// readLog walks a log object.
func readLog(ctx context.Context, from Store, o id, v *visitor) error {
	r, err := from.Get(ctx, o.name())
	if err != nil {
		return err
	}
	defer r.Close() // only read
	return v.walk(newDecoder(o, r))
}
