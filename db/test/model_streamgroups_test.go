package db_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/structures"
)

// The operations of the model test on groups of streams. How many entries a group has read is taken from the store,
// which keeps it; TestStreamGroupProgress says what it must be.

type modelGroup struct {
	last      db.StreamID
	read      int64
	consumers map[string]modelConsumer
	pending   map[db.StreamID]modelPending
}

type modelConsumer struct{ seen, active int64 }

type modelPending struct {
	consumer   string
	delivered  int64
	deliveries int64
}

func (g *modelGroup) clone() *modelGroup {
	return &modelGroup{g.last, g.read, maps.Clone(g.consumers), maps.Clone(g.pending)}
}

// ids are those of pending entries in order.
func (g *modelGroup) ids() []db.StreamID {
	return slices.SortedFunc(maps.Keys(g.pending), func(a, b db.StreamID) int { return a.Compare(b) })
}

func (s *modelStream) describeGroups(b *strings.Builder) {
	for _, name := range slices.Sorted(maps.Keys(s.groups)) {
		b.WriteString(s.groups[name].text(name))
	}
}

func (g *modelGroup) text(name string) string {
	b := new(strings.Builder)
	fmt.Fprintf(b, " group %q %v %d", name, g.last, g.read)
	for _, c := range slices.Sorted(maps.Keys(g.consumers)) {
		fmt.Fprintf(b, " %q %v", c, g.consumers[c])
	}
	for _, id := range g.ids() {
		p := g.pending[id]
		fmt.Fprintf(b, " %v %q %d %d", id, p.consumer, p.delivered, p.deliveries)
	}
	return b.String()
}

// groupOf is the group that a state describes.
func groupOf(state db.StreamGroupState) *modelGroup {
	g := &modelGroup{state.Last, state.Read, map[string]modelConsumer{}, map[db.StreamID]modelPending{}}
	for _, c := range state.Consumers {
		g.consumers[c.Name] = modelConsumer{c.Seen, c.Active}
	}
	for _, p := range state.Pending {
		g.pending[p.ID] = modelPending{p.Consumer, p.Delivered, p.Deliveries}
	}
	return g
}

// readGroups reads the groups of a stream, in two ways.
func readGroups(s db.Stream) (map[string]*modelGroup, error) {
	infos, err := s.Groups()
	if err != nil || len(infos) == 0 {
		return nil, err
	}
	n, err := s.CountGroups()
	if err != nil || n != len(infos) {
		return nil, cmp.Or(err, fmt.Errorf("%d groups, counted as %d", len(infos), n))
	}
	groups := map[string]*modelGroup{}
	for _, info := range infos {
		state, err := s.Group(info.Name).State()
		if err != nil {
			return nil, err
		}
		g := groupOf(state)
		sum, err := s.Group(info.Name).PendingSummary()
		if err != nil {
			return nil, err
		}
		total := 0
		for _, c := range sum.Consumers {
			total += c.Count
		}
		if sum.Count != len(g.pending) || total != sum.Count || info.Pending != sum.Count || info.Consumers != len(g.consumers) || info.Last != g.last {
			return nil, fmt.Errorf("group %q: %+v, %+v, %d pending", info.Name, info, sum, len(g.pending))
		}
		groups[info.Name] = g
	}
	return groups, nil
}

// group chooses a group, of a stream that has it as a rule.
func (x *modelOp) group() (key, name string, s *modelStream, g *modelGroup, want error) {
	key, name = x.key(), x.name()
	if x.rng.IntN(3) > 0 { // one that there is
		for _, k := range slices.Sorted(maps.Keys(x.space)) {
			if v := x.space[k].streamOf(); v != nil && len(v.groups) > 0 && (s == nil || x.rng.IntN(3) == 0) {
				names := slices.Sorted(maps.Keys(v.groups))
				key, name, s = k, names[x.rng.IntN(len(names))], v
			}
		}
	}
	v, want := x.get(key, db.TypeStream)
	if s = v.streamOf(); s != nil {
		g = s.groups[name]
	}
	if want == nil && g == nil {
		want = structures.ErrNoGroup
	}
	return key, name, s, g, want
}

func (x *modelOp) on(key, name string) db.StreamGroup { return x.keys.Stream(key).Group(name) }

// adopt takes how many entries a group has read from the store.
func (x *modelOp) adopt(key, name string, g *modelGroup) {
	if info, err := x.on(key, name).Info(); err == nil {
		g.read = info.Read
	}
}

// see notes that a consumer was seen, unless it was a short while ago.
func (x *modelOp) see(g *modelGroup, consumer string) {
	c, ok := g.consumers[consumer]
	if ok && x.now-c.seen < structures.SeenStep {
		return
	}
	if !ok {
		c.active = -1
	}
	c.seen = x.now
	g.consumers[consumer] = c
}

func (x *modelOp) act(g *modelGroup, consumer string) {
	c := g.consumers[consumer]
	if since := x.now - c.active; c.active == -1 || since < 0 || since >= structures.ActiveStep {
		g.consumers[consumer] = modelConsumer{x.now, x.now}
	}
}

func opXGroupCreate(x *modelOp) {
	key, name := x.key(), x.name()
	v, want := x.get(key, db.TypeStream)
	s := v.streamOf()
	start := db.StreamGroupStart{ID: x.streamID(s), Last: x.rng.IntN(3) == 0, Make: x.rng.IntN(3) > 0}
	if x.rng.IntN(3) == 0 {
		n := x.rng.Uint64N(10)
		start.Read = &n
	}
	x.begin("XGROUP CREATE %q %q %+v", key, name, start)
	switch {
	case want != nil:
	case s == nil && !start.Make:
		want = db.ErrNotFound
	case s != nil && s.groups[name] != nil:
		want = db.ErrExists
	}
	if want == nil {
		s = x.makeStream(key)
		if s.groups == nil {
			s.groups = map[string]*modelGroup{}
		}
		s.groups[name] = &modelGroup{startOf(start, s), readOf(start), map[string]modelConsumer{}, map[db.StreamID]modelPending{}}
	}
	x.result(nil, x.on(key, name).Create(start), nil, want)
}

func opXGroupChange(x *modelOp) {
	key, name, s, g, want := x.group()
	consumer := x.name()
	switch x.rng.IntN(6) {
	default:
		x.begin("XGROUP CREATECONSUMER %q %q %q", key, name, consumer)
		made := false
		if g != nil {
			if _, ok := g.consumers[consumer]; !ok {
				made = true
				x.see(g, consumer)
			}
		}
		got, err := x.on(key, name).CreateConsumer(consumer)
		x.result(got, err, made, want)
	case 0, 1:
		start := db.StreamGroupStart{ID: x.streamID(s), Last: x.rng.IntN(3) == 0}
		x.begin("XGROUP SETID %q %q %+v", key, name, start)
		if g != nil {
			g.last, g.read = startOf(start, s), readOf(start)
		}
		x.result(nil, x.on(key, name).Set(start), nil, want)
	case 2:
		x.begin("XGROUP DESTROY %q %q", key, name)
		if want == structures.ErrNoGroup {
			want = some(s != nil)
		}
		if g != nil {
			delete(s.groups, name)
		}
		got, err := x.on(key, name).Destroy()
		x.result(got, err, g != nil, want)
	case 3:
		x.begin("XGROUP DELCONSUMER %q %q %q", key, name, consumer)
		n := 0
		if g != nil {
			delete(g.consumers, consumer)
			maps.DeleteFunc(g.pending, func(_ db.StreamID, p modelPending) bool {
				if p.consumer == consumer {
					n++
				}
				return p.consumer == consumer
			})
		}
		got, err := x.on(key, name).DeleteConsumer(consumer)
		x.result(got, err, n, want)
	}
}

// startOf and readOf are where a group begins, and what it has read by then.
func startOf(start db.StreamGroupStart, s *modelStream) db.StreamID {
	if start.Last {
		return s.last
	}
	return start.ID
}

func readOf(start db.StreamGroupStart) int64 {
	if start.Read == nil {
		return -1
	}
	return int64(*start.Read)
}

func opXReadGroup(x *modelOp) {
	key, name, s, g, want := x.group()
	consumer, r := x.name(), structures.StreamGroupRead{Count: x.rng.IntN(5), NoAck: x.rng.IntN(5) == 0}
	r.Consumer = consumer
	x.begin("XREADGROUP %q %q %+v", key, name, r)
	var list []modelEntry
	if g != nil {
		x.see(g, consumer)
		for _, e := range s.entries {
			if !g.last.Less(e.id) || r.Count > 0 && len(list) == r.Count {
				continue
			}
			list = append(list, e)
		}
		for _, e := range list {
			g.last = e.id
			if !r.NoAck {
				g.pending[e.id] = modelPending{consumer, x.now, 1}
				x.act(g, consumer)
			}
		}
	}
	var got []db.StreamEntry
	err := x.on(key, name).VisitRead(r, func(id db.StreamID, fields [][]byte) bool {
		got = append(got, db.CopyStreamEntry(id, fields))
		return true
	})
	x.result(append([]modelEntry(nil), entriesOf(got)...), err, list, want)
	if g != nil {
		x.adopt(key, name, g)
	}
}

// entry is an entry of the stream, without fields if it is gone.
func (s *modelStream) entry(id db.StreamID) (e modelEntry, ok bool) {
	if i := slices.IndexFunc(s.entries, func(e modelEntry) bool { return e.id == id }); i >= 0 {
		return s.entries[i], true
	}
	return modelEntry{id: id}, false
}

func opXHistory(x *modelOp) {
	key, name, s, g, want := x.group()
	consumer, after, count := x.name(), x.streamID(s), x.rng.IntN(4)
	x.begin("XREADGROUP %q %q %q after %v count %d", key, name, consumer, after, count)
	var list []modelEntry
	if g != nil {
		x.see(g, consumer)
		for _, id := range g.ids() {
			p := g.pending[id]
			if p.consumer != consumer || !after.Less(id) || count > 0 && len(list) == count {
				continue
			}
			e, there := s.entry(id)
			if list = append(list, e); there {
				p.delivered, p.deliveries = x.now, p.deliveries+1
				g.pending[id] = p
			}
		}
	}
	got, err := x.on(key, name).History(consumer, after, count)
	x.result(append([]modelEntry(nil), entriesOf(got)...), err, list, want)
}

func (x *modelOp) pendingIDs(s *modelStream, g *modelGroup) []db.StreamID {
	ids := make([]db.StreamID, x.rng.IntN(4))
	for i := range ids {
		if ids[i] = x.streamID(s); g != nil && len(g.pending) > 0 && x.rng.IntN(3) > 0 {
			ids[i] = g.ids()[x.rng.IntN(len(g.pending))]
		}
	}
	return ids
}

func opXAck(x *modelOp) {
	key, name, s, g, want := x.group()
	ids := x.pendingIDs(s, g)
	x.begin("XACK %q %q %v", key, name, ids)
	n := 0
	if want == structures.ErrNoGroup {
		want = nil
	}
	for _, id := range ids {
		if g == nil {
			break
		}
		if _, ok := g.pending[id]; ok {
			delete(g.pending, id)
			n++
		}
	}
	got, err := x.on(key, name).Ack(ids...)
	x.result(got, err, n, want)
}

func opXAckDel(x *modelOp) {
	key, name, s, g, want := x.group()
	ids, how := x.pendingIDs(s, g), db.StreamReferences(x.rng.IntN(3))
	x.begin("XACKDEL %q %q %d %v", key, name, how, ids)
	if want == structures.ErrNoGroup {
		want = nil
	}
	became := make([]db.StreamDeletion, len(ids))
	for i, id := range ids {
		became[i] = structures.EntryAbsent
		if g == nil {
			continue
		}
		if _, ok := g.pending[id]; ok {
			delete(g.pending, id)
			if became[i] = s.delete(how, id); became[i] == structures.EntryAbsent {
				became[i] = structures.EntryDeleted
			}
		}
	}
	got, err := x.on(key, name).AckAndDelete(how, ids...)
	x.result(fmt.Sprint(got), err, fmt.Sprint(became), want)
}

func opXPending(x *modelOp) {
	key, name, s, g, want := x.group()
	r := db.StreamPendingRange{From: x.streamID(s), To: x.streamID(s), Count: x.rng.IntN(4), Only: x.rng.IntN(3) == 0, Consumer: x.name()}
	if x.rng.IntN(2) == 0 {
		r.MinIdle = x.rng.Int64N(3000)
	}
	if x.rng.IntN(2) == 0 {
		r.From, r.To = db.StreamID{}, db.MaxStreamID
	}
	x.begin("XPENDING %q %q %+v", key, name, r)
	var list []db.StreamPending
	if g != nil {
		for _, id := range g.ids() {
			p := g.pending[id]
			if id.Less(r.From) || r.To.Less(id) || r.Only && p.consumer != r.Consumer || r.MinIdle > 0 && x.now-p.delivered < r.MinIdle ||
				r.Count > 0 && len(list) == r.Count {
				continue
			}
			list = append(list, db.StreamPending{ID: id, Consumer: p.consumer, Delivered: p.delivered, Deliveries: p.deliveries})
		}
	}
	got, err := x.on(key, name).Pending(r)
	x.result(got, err, list, want)
}

func opXClaim(x *modelOp) {
	key, name, s, g, want := x.group()
	ids := x.pendingIDs(s, g)
	c := db.StreamClaim{Consumer: x.name(), Force: x.rng.IntN(3) == 0, JustID: x.rng.IntN(3) == 0}
	if x.rng.IntN(3) == 0 {
		c.MinIdle = x.rng.Int64N(2000)
	}
	if x.rng.IntN(3) == 0 {
		at := x.now - x.rng.Int64N(3000) + 100
		c.Delivered = &at
	}
	if x.rng.IntN(3) == 0 {
		n := x.rng.Int64N(5)
		c.Deliveries = &n
	}
	if x.rng.IntN(5) == 0 {
		c.Last = x.streamID(s)
	}
	x.begin("XCLAIM %q %q %+v %v", key, name, c, ids)
	var list []modelEntry
	if g != nil {
		if x.see(g, c.Consumer); g.last.Less(c.Last) {
			g.last = c.Last
		}
		for _, id := range ids {
			p, ok := g.pending[id]
			e, there := s.entry(id)
			switch {
			case !there:
				delete(g.pending, id)
				continue
			case !ok && !c.Force, ok && c.MinIdle > 0 && x.now-p.delivered < c.MinIdle:
				continue
			case !ok:
				p.deliveries = 1
			}
			x.claim(g, id, p, c)
			if c.JustID {
				e.fields = ""
			}
			list = append(list, e)
		}
	}
	got, err := x.on(key, name).Claim(c, ids...)
	x.result(append([]modelEntry(nil), entriesOf(got)...), err, list, want)
}

func (x *modelOp) claim(g *modelGroup, id db.StreamID, p modelPending, c db.StreamClaim) {
	if p.consumer, p.delivered = c.Consumer, x.now; c.Delivered != nil && *c.Delivered >= 0 {
		p.delivered = min(x.now, *c.Delivered)
	}
	if c.Deliveries != nil {
		p.deliveries = *c.Deliveries
	} else if !c.JustID {
		p.deliveries++
	}
	g.pending[id] = p
	x.act(g, c.Consumer)
}

func opXAutoClaim(x *modelOp) {
	key, name, s, g, want := x.group()
	c := db.StreamAutoClaim{Consumer: x.name(), Count: 1 + x.rng.IntN(4), JustID: x.rng.IntN(3) == 0}
	if x.rng.IntN(3) == 0 {
		c.MinIdle = x.rng.Int64N(2000)
	}
	if x.rng.IntN(2) == 0 {
		c.From = x.streamID(s)
	}
	x.begin("XAUTOCLAIM %q %q %+v", key, name, c)
	var list []modelEntry
	var gone []db.StreamID
	var next db.StreamID
	if g != nil {
		x.see(g, c.Consumer)
		tried := 0
		for _, id := range g.ids() {
			if id.Less(c.From) {
				continue
			}
			if tried == 10*c.Count || len(list)+len(gone) == c.Count {
				next = id
				break
			}
			tried++
			p := g.pending[id]
			e, there := s.entry(id)
			switch {
			case !there:
				delete(g.pending, id)
				gone = append(gone, id)
				continue
			case c.MinIdle > 0 && x.now-p.delivered < c.MinIdle:
				continue
			case c.JustID:
				e.fields = ""
			}
			x.claim(g, id, p, db.StreamClaim{Consumer: c.Consumer, JustID: c.JustID})
			list = append(list, e)
		}
	}
	got, at, lost, err := x.on(key, name).AutoClaim(c)
	x.result(fmt.Sprint(append([]modelEntry(nil), entriesOf(got)...), at, lost), err, fmt.Sprint(list, next, gone), want)
}

func opXClaimIdle(x *modelOp) {
	key, name, s, g, want := x.group()
	c := structures.StreamIdleClaim{Consumer: x.name(), MinIdle: x.rng.Int64N(2000), Count: x.rng.IntN(4)}
	x.begin("XREADGROUP CLAIM %q %q %+v", key, name, c)
	var list []string
	if g != nil {
		x.see(g, c.Consumer)
		ids := g.ids()
		slices.SortStableFunc(ids, func(a, b db.StreamID) int { return cmp.Compare(g.pending[a].delivered, g.pending[b].delivered) })
		for _, id := range ids {
			p := g.pending[id]
			if len(list) == c.Count && c.Count > 0 || x.now-p.delivered < c.MinIdle {
				continue
			}
			if _, there := s.entry(id); !there {
				delete(g.pending, id)
				continue
			}
			x.claim(g, id, p, db.StreamClaim{Consumer: c.Consumer})
			list = append(list, fmt.Sprint(id, x.now-p.delivered, p.deliveries))
		}
	}
	var got []string
	err := x.on(key, name).VisitClaimIdle(c, func(id db.StreamID, _ [][]byte, idle, deliveries int64) bool {
		got = append(got, fmt.Sprint(id, idle, deliveries))
		return true
	})
	x.result(got, err, list, want)
}
