package db_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/bitcask/feed"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/jsonl"
	"github.com/stavedb/stave/keydir"
)

// feedModel is what commits have made of keys, by namespace and key.
type feedModel map[feedKey]*feedValue

type feedKey struct {
	ns  int
	key string
}

type feedValue struct {
	typ    string
	text   []byte // of a string
	chunk  int
	fields map[string]string // of hash, set (without values) and stream (the JSON of an entry)
	items  map[keydir.ListPlace]string
	scores map[string]float64
	expire int64
	until  map[string]int64  // of fields
	groups map[string]string // records of consumer groups
}

func (m feedModel) at(c *feed.Change) *feedValue {
	k := feedKey{c.Namespace, string(c.Key)}
	if m[k] == nil {
		m[k] = new(feedValue)
	}
	v := m[k]
	if c.Type != "" && v.typ != c.Type && c.Type != feed.GroupsType {
		var groups map[string]string
		if v.typ == "" { // the first one may come before its stream
			groups = v.groups
		}
		*v = feedValue{typ: c.Type, expire: v.expire, groups: groups, fields: map[string]string{}, items: map[keydir.ListPlace]string{}, scores: map[string]float64{}, until: map[string]int64{}}
	}
	return v
}

// apply does what a commit says, which may have been done before.
func (m feedModel) apply(c *feed.Commit) error {
	for i := range c.Changes {
		ch := &c.Changes[i]
		switch ch.Op {
		case feed.OpFlush:
			maps.DeleteFunc(m, func(k feedKey, _ *feedValue) bool { return k.ns == ch.Namespace })
		case feed.OpSwap:
			swapped := map[int]int{ch.Namespace: ch.With, ch.With: ch.Namespace}
			now := feedModel{}
			for k, v := range m {
				if to, ok := swapped[k.ns]; ok {
					k.ns = to
				}
				now[k] = v
			}
			clear(m)
			maps.Copy(m, now)
		case feed.OpDelete:
			delete(m, feedKey{ch.Namespace, string(ch.Key)})
		case feed.OpPut:
			m.put(ch)
		case feed.OpRemove:
			v := m.at(ch)
			if ch.Type == feed.GroupsType {
				v.removeGroups(string(ch.Element))
				continue
			}
			delete(v.fields, string(ch.Element)+ch.ID)
			delete(v.until, string(ch.Element))
			delete(v.scores, string(ch.Element))
			delete(v.items, keydir.ListPlace{Index: ch.Index, Sub: ch.Sub})
		case feed.OpRemoveRange:
			from, to := keydir.ListPlace{Index: ch.Index, Sub: ch.Sub}, keydir.ListPlace{Index: ch.To, Sub: ch.ToSub}
			maps.DeleteFunc(m.at(ch).items, func(at keydir.ListPlace, _ string) bool { return !at.Less(from) && !to.Less(at) })
		case feed.OpExpire:
			if v := m.at(ch); ch.Element == nil {
				v.expire = ch.ExpireAt
			} else if v.typ == "hash" {
				v.until[string(ch.Element)] = ch.ExpireAt
			}
		case feed.OpPersist:
			if v := m.at(ch); ch.Element == nil {
				v.expire = 0
			} else {
				delete(v.until, string(ch.Element))
			}
		case feed.OpLength:
			v := m.at(ch)
			v.text = append(v.text, make([]byte, max(ch.Length-int64(len(v.text)), 0))...)[:ch.Length]
		case feed.OpStream:
			first, _ := db.ParseStreamID(ch.First)
			maps.DeleteFunc(m.at(ch).fields, func(id, _ string) bool {
				entry, _ := db.ParseStreamID(id)
				return entry.Less(first)
			})
		default:
			return fmt.Errorf("op %q", ch.Op)
		}
	}
	return nil
}

func (m feedModel) put(ch *feed.Change) {
	v := m.at(ch)
	switch ch.Type {
	case feed.GroupsType:
		if v.groups == nil {
			v.groups = map[string]string{}
		}
		v.groups[string(ch.Element)] = string(ch.Value)
	case "string":
		if ch.ChunkSize == 0 {
			v.text = nil
		} else if v.chunk != ch.ChunkSize {
			v.text = nil
		}
		v.chunk = ch.ChunkSize
		end := ch.Offset + int64(len(ch.Value))
		v.text = append(v.text, make([]byte, max(end-int64(len(v.text)), 0))...)
		copy(v.text[ch.Offset:], ch.Value)
	case "list":
		v.items[keydir.ListPlace{Index: ch.Index, Sub: ch.Sub}] = string(ch.Value)
	case "zset":
		v.scores[string(ch.Element)] = ch.Score
	case "stream":
		entry := []string{ch.ID}
		for _, f := range ch.Fields {
			entry = append(entry, string(f))
		}
		b, _ := json.Marshal(entry) // strings
		v.fields[ch.ID] = string(b)
	default:
		v.fields[string(ch.Element)] = string(ch.Value)
	}
}

// removeGroups removes one record of groups, or all that a tombstone names.
func (v *feedValue) removeGroups(elem string) {
	ranges, _ := keydir.GroupsRangeOf([]byte(elem))
	maps.DeleteFunc(v.groups, func(name, value string) bool {
		score, _ := keydir.GroupsScore([]byte(name), []byte(value))
		return name == elem || slices.ContainsFunc(ranges, func(r keydir.ScoreRange) bool { return r.From <= score && score <= r.To })
	})
}

// groups are the records of all consumer groups, as groupRecords has them.
func (m feedModel) groups() map[string]string {
	all := map[string]string{}
	for k, v := range m {
		for elem, value := range v.groups {
			all[groupRecord(k.ns, k.key, elem)] = value
		}
	}
	return all
}

// text is all of it, a line a key, as storeText has it.
func (m feedModel) text() string {
	var lines []string
	for k, v := range m {
		if v.typ == "" || v.typ != "string" && v.typ != "stream" && len(v.fields)+len(v.items)+len(v.scores) == 0 {
			continue
		}
		var value any = fmt.Sprintf("%q", v.text)
		switch v.typ {
		case "hash":
			value = v.fields
		case "set":
			value = slices.Sorted(maps.Keys(v.fields))
		case "list":
			list := []string{}
			for _, i := range slices.SortedFunc(maps.Keys(v.items), keydir.ListPlace.Compare) {
				list = append(list, v.items[i])
			}
			value = list
		case "zset":
			value = v.scores
		case "stream":
			value = slices.AppendSeq([]string{}, maps.Values(v.fields))
			slices.Sort(value.([]string))
		}
		lines = append(lines, feedLine(k.ns, k.key, v.typ, value, v.expire, v.until))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func feedLine(ns int, key, typ string, value any, expire int64, until map[string]int64) string {
	if len(until) == 0 {
		until = nil
	}
	b, err := json.Marshal([]any{ns, key, typ, value, expire, until})
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return string(b)
}

// storeText is what a store holds, as feedModel.text has it.
func storeText(t *testing.T, s *db.Store) string {
	t.Helper()
	var b bytes.Buffer
	ok[jsonl.ExportResult](t)(jsonl.Export(t.Context(), s, &b, jsonl.ExportOptions{}))
	var lines []string
	for line := range strings.Lines(b.String()) {
		var l struct {
			DB     int `json:"db"`
			Key    string
			Type   string
			Value  any
			Binary []byte           `json:"valueB64"` // of a string that is no UTF-8, such as one of which bits were set
			Expire int64            `json:"expire_at_ms"`
			Until  map[string]int64 `json:"field_expire_at_ms"`
		}
		must(t, json.Unmarshal([]byte(line), &l))
		switch l.Type {
		case "string":
			if l.Binary == nil {
				l.Binary = []byte(l.Value.(string))
			}
			l.Value = fmt.Sprintf("%q", l.Binary)
		case "zset":
			scores := map[string]float64{}
			for _, pair := range l.Value.([]any) {
				scores[pair.([]any)[0].(string)] = pair.([]any)[1].(float64)
			}
			l.Value = scores
		case "stream":
			entries := []string{}
			for _, entry := range l.Value.(map[string]any)["entries"].([]any) {
				entries = append(entries, string(ok[[]byte](t)(json.Marshal(entry))))
			}
			slices.Sort(entries)
			l.Value = entries
		}
		lines = append(lines, feedLine(l.DB, l.Key, l.Type, l.Value, l.Expire, l.Until))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// sameContent reports the first key of which commits make something else than what the store holds.
func sameContent(t *testing.T, m feedModel, s *db.Store) {
	t.Helper()
	got, want := strings.Split(m.text(), "\n"), strings.Split(storeText(t, s), "\n")
	for i := range max(len(got), len(want)) {
		var a, b string
		if i < len(got) {
			a = got[i]
		}
		if i < len(want) {
			b = want[i]
		}
		if a != b {
			t.Errorf("the commits make %.3000q, the store holds %.3000q", a, b)
			return
		}
	}
}

// openFeed opens a feed, and closes it at the end of the test.
func openFeed(t *testing.T, dir string, o bitcask.FeedOptions) *feed.Feed {
	t.Helper()
	f := ok[*feed.Feed](t)(bitcask.OpenFeed(t.Context(), dir, o))
	t.Cleanup(func() { must(t, f.Close()) })
	return f
}

// drain calls fn for each commit that there is.
func drain(ctx context.Context, f *feed.Feed, fn func(c *feed.Commit) error) error {
	for {
		c, err := f.Next(ctx)
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = fn(c)
		}
		if err != nil {
			return err
		}
	}
}

// commitText is all that a commit says.
func commitText(c *feed.Commit) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d-%d", c.First, c.Last)
	for i := range c.Changes {
		ch := &c.Changes[i]
		fmt.Fprintf(&b, "; %s %d %s %q %q %q %v %d %d %d %d %s %q %d %d %d %d %s %s %s %d %d", ch.Op, ch.Namespace, ch.Type, ch.Key, ch.Element, ch.Value, ch.Score,
			ch.Index, ch.Sub, ch.To, ch.ToSub, ch.ID, ch.Fields, ch.ExpireAt, ch.Offset, ch.ChunkSize, ch.Length, ch.First, ch.Last, ch.Deleted, ch.Added, ch.With)
	}
	return b.String()
}

// commits are all that a store has after a sequence number.
func commits(t *testing.T, dir string, after uint64, o *bitcask.Options) (list []string, last []uint64) {
	t.Helper()
	f := ok[*feed.Feed](t)(bitcask.OpenFeed(t.Context(), dir, bitcask.FeedOptions{After: after, Store: o}))
	defer func() { must(t, f.Close()) }()
	must(t, drain(t.Context(), f, func(c *feed.Commit) error {
		list, last = append(list, commitText(c)), append(last, c.Last)
		return nil
	}))
	return list, last
}

// TestFeed: a feed that is read next to rotations, merges, flushes, swaps and a writer that closes and opens the store
// again has every commit once and in order, and doing what they say makes what the store holds.
func TestFeed(t *testing.T) {
	for name, copies := range map[string]seam.Copies{"copied": seam.CopiesOn, "written": seam.CopiesOff} {
		t.Run(name, func(t *testing.T) {
			dir, r := t.TempDir(), chance.Rand(t)
			open := func() *db.Store {
				o := seam.With(&db.Options{SegmentSize: 16 << 10, NoMerge: true, ExpireEvery: -1, SyncEvery: 5 * time.Millisecond}, seam.Options{Copies: copies, CopyStep: 4 << 10})
				return ok[*db.Store](t)(db.Open(dir, o))
			}
			w := open()
			defer func() { must(t, w.Close()) }()
			work := &followWorkload{s: w, r: r}
			f := openFeed(t, dir, bitcask.FeedOptions{})
			m, last, during := feedModel{}, uint64(0), 0
			take := func(c *feed.Commit) error {
				if c.First != last+1 {
					return fmt.Errorf("a commit from %d after %d", c.First, last)
				}
				last = c.Last
				return m.apply(c)
			}
			n := 1000
			if testing.Short() {
				n = 300
			}
			for i := range n {
				must(t, work.commit())
				switch n := r.IntN(200); {
				case n < 4: // the feed has seen which segments there are
					must(t, drain(t.Context(), f, take))
					if n < 2 {
						must(t, mergeSome(w, r))
					} else {
						must(t, mergeEverything(w))
					}
				case n < 6:
					must(t, w.Close())
					w = open()
					work.s = w
				case n < 30:
					must(t, drain(t.Context(), f, take))
				}
				if i == n-1 {
					during = int(last)
				}
			}
			must(t, w.Close())
			must(t, drain(t.Context(), f, take))
			w = open()
			equal(t, "the last sequence number", last, w.Position())
			sameContent(t, m, w)
			equal(t, "records of groups", fmt.Sprint(m.groups()), fmt.Sprint(ok[map[string]string](t)(groupRecords(w))))
			t.Logf("%d of %d records were shown before the writer had closed", during, last)
		})
	}
}

// TestFeedResumes: a feed that begins after any sequence number, also one within a commit, shows the same as the one
// that has begun at the beginning, namespaces included.
func TestFeedResumes(t *testing.T) {
	dir, r := t.TempDir(), chance.Rand(t)
	open := func() *db.Store {
		return ok[*db.Store](t)(db.Open(dir, &db.Options{SegmentSize: 16 << 10, NoMerge: true, ExpireEvery: -1}))
	}
	w := open()
	work := &followWorkload{s: w, r: r}
	for i := range 150 {
		must(t, work.commit())
		switch {
		case i%50 == 20:
			must(t, work.s.Swap(0, 1))
		case i%50 == 40:
			must(t, work.s.Flush())
		case i%40 == 0:
			must(t, work.s.Close())
			work.s = open()
		}
	}
	must(t, work.s.Close())
	all, last := commits(t, dir, 0, nil)
	end := last[len(last)-1]
	for after := uint64(0); after <= end; after += 1 + r.Uint64N(1+end/60) {
		i, _ := slices.BinarySearch(last, after+1) // the first commit that ends after it
		got, _ := commits(t, dir, after, nil)
		if !slices.Equal(got, all[i:]) {
			t.Fatalf("after %d: %d commits, want the last %d of all:\n%s\nwant\n%s", after, len(got), len(all)-i, strings.Join(got, "\n"), strings.Join(all[i:], "\n"))
		}
	}
	for _, n := range []int{1, 7, len(all), len(all) + 100} {
		f := openFeed(t, dir, bitcask.FeedOptions{Newest: n})
		var got []string
		must(t, drain(t.Context(), f, func(c *feed.Commit) error { got = append(got, commitText(c)); return nil }))
		equal(t, fmt.Sprintf("the last %d", n), strings.Join(got, "\n"), strings.Join(all[max(len(all)-n, 0):], "\n"))
	}
	_, err := drained(t, dir, end+1)
	future, ok := errors.AsType[*feed.FutureError](err)
	if !ok || future.End != end || future.After != end+1 {
		t.Errorf("a beginning after the end: %v", err)
	}
}

// drained reads all after a sequence number, with the error that ends it.
func drained(t *testing.T, dir string, after uint64) (list []string, err error) {
	t.Helper()
	f, err := bitcask.OpenFeed(t.Context(), dir, bitcask.FeedOptions{After: after})
	if err != nil {
		return nil, err
	}
	defer func() { must(t, f.Close()) }()
	err = drain(t.Context(), f, func(c *feed.Commit) error { list = append(list, commitText(c)); return nil })
	return list, err
}

// TestFeedAfterMerges: where merges have removed commits a beginning before that is an error that says from where on
// all are there, and they are. What they make of an export of that time or later is what the store holds.
func TestFeedAfterMerges(t *testing.T) {
	dir := t.TempDir()
	w := ok[*db.Store](t)(db.Open(dir, &db.Options{NoMerge: true, ExpireEvery: -1}))
	work := &followWorkload{s: w, r: chance.Rand(t)}
	for range 60 {
		must(t, work.commit())
	}
	must(t, w.Flush()) // the namespaces before are not known any more
	must(t, mergeEverything(w))
	merged := w.Position()
	must(t, w.String("a").Put([]byte("1")))
	must(t, w.String("b").Put([]byte("2")))
	must(t, w.Close())
	for _, after := range []uint64{0, merged / 2, merged - 1} {
		_, err := drained(t, dir, after)
		missing, ok := errors.AsType[*feed.MissingCommitsError](err)
		if !ok || missing.After != after || missing.From != merged {
			t.Fatalf("after %d: %v, want all after %d", after, err, merged)
		}
	}
	for after, want := range map[uint64]int{merged: 2, merged + 1: 1, merged + 2: 0} {
		got, err := drained(t, dir, after)
		must(t, err)
		equal(t, fmt.Sprint("commits after ", after), len(got), want)
	}
	f := openFeed(t, dir, bitcask.FeedOptions{Newest: 10})
	n := 0
	must(t, drain(t.Context(), f, func(*feed.Commit) error { n++; return nil }))
	equal(t, "the newest commits", n, 2)
}

// TestFeedNamespacesAreLost: where a flush has come after what is left of the log begins, and the record before that is
// merged, a beginning before the flush is an error that names it.
func TestFeedNamespacesAreLost(t *testing.T) {
	dir := t.TempDir()
	w := ok[*db.Store](t)(db.Open(dir, &db.Options{NoMerge: true, ExpireEvery: -1}))
	must(t, w.String("a").Put([]byte("1")))
	must(t, w.Swap(0, 1))
	must(t, mergeEverything(w))
	merged := w.Position()
	must(t, w.String("b").Put([]byte("2")))
	before, err := drained(t, dir, merged)
	must(t, err)
	must(t, w.Swap(0, 2))
	at := w.Position()
	must(t, w.String("c").Put([]byte("3")))
	must(t, w.Close())
	_, err = drained(t, dir, merged)
	missing, ok := errors.AsType[*feed.MissingCommitsError](err)
	if !ok || missing.From != at {
		t.Errorf("before the swap: %v, want all after %d (%v)", err, at, before)
	}
	got, err := drained(t, dir, at)
	must(t, err)
	equal(t, "commits after the swap", len(got), 1)
}

// TestFeedDamage: with any bit of the log flipped a feed ends with an error that says where, after commits that are
// those of the intact log.
func TestFeedDamage(t *testing.T) {
	dir, r := t.TempDir(), chance.Rand(t)
	w := ok[*db.Store](t)(db.Open(dir, seam.With(&db.Options{SegmentSize: 2 << 10, NoMerge: true, ExpireEvery: -1}, seam.Options{NoHints: true, NoIndex: true})))
	for i := range 60 {
		must(t, w.String(fmt.Sprint("k", i%7)).Put(bytes.Repeat([]byte("v"), i)))
	}
	must(t, w.Close())
	want, _ := commits(t, dir, 0, nil)
	files := ok[[]string](t)(filepath.Glob(filepath.Join(dir, "*"+bitcask.DataSuffix)))
	flips := 150
	if testing.Short() {
		flips = 40
	}
	for range flips {
		file := files[r.IntN(len(files))]
		b := ok[[]byte](t)(os.ReadFile(file))
		if len(b) == 0 {
			continue
		}
		at, bit := r.IntN(len(bytes.TrimRight(b, "\x00"))), byte(1)<<r.IntN(8)
		if r.IntN(3) == 0 {
			at = min(at, r.IntN(100)) // the headers of the file and of its first commit
		}
		b[at] ^= bit
		must(t, os.WriteFile(file, b, 0o644))
		got, err := drained(t, dir, 0)
		_, corrupt := errors.AsType[*bitcask.CorruptError](err)
		if !corrupt && !errors.Is(err, bitcask.ErrForeign) && !errors.Is(err, bitcask.ErrVersion) {
			t.Errorf("%s, bit %02x of byte %d: %d of %d commits, error %v", filepath.Base(file), bit, at, len(got), len(want), err)
		}
		if len(got) > len(want) || !slices.Equal(got, want[:len(got)]) {
			t.Errorf("%s, bit %02x of byte %d: other commits", filepath.Base(file), bit, at)
		}
		b[at] ^= bit
		must(t, os.WriteFile(file, b, 0o644))
	}
	got, _ := commits(t, dir, 0, nil)
	equal(t, "commits in the end", len(got), len(want))
}

// TestFeedKilled: a feed goes on through any number of writers that are killed, has every commit once, and none that
// the store has not. Where they merge as well, it may be overtaken by them, and says so.
func TestFeedKilled(t *testing.T) {
	dir, r := t.TempDir(), chance.Rand(t)
	must(t, ok[*db.Store](t)(db.Open(dir, nil)).Close())
	f := openFeed(t, dir, bitcask.FeedOptions{})
	m, last := feedModel{}, uint64(0)
	take := func(c *feed.Commit) error {
		if c.First != last+1 {
			return fmt.Errorf("a commit from %d after %d", c.First, last)
		}
		last = c.Last
		return m.apply(c)
	}
	merges := r.IntN(2) == 0
	follow := func(err error) bool {
		if err == nil {
			err = drain(t.Context(), f, take)
		}
		if e, overtaken := errors.AsType[*feed.MissingCommitsError](err); overtaken && merges {
			equal(t, "the last commit before merges overtook the feed", e.After, last)
			return false
		}
		must(t, err)
		return true
	}
	for range 3 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestFollowKilled$")
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %t %s", followEnv, r.Uint64(), merges, dir))
		cmd.Stderr = os.Stderr
		out := ok[io.ReadCloser](t)(cmd.StdoutPipe())
		must(t, cmd.Start())
		read, said := make(chan struct{}), ""
		go func() { // so that it is not held up
			defer close(read)
			for lines := bufio.NewScanner(out); lines.Scan(); {
				said = lines.Text()
			}
		}()
		wanted := last + 50 + r.Uint64N(400)
		complete := true
		for complete && last < wanted {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			err := f.Wait(ctx)
			cancel()
			if errors.Is(err, context.DeadlineExceeded) {
				_ = cmd.Process.Signal(syscall.SIGQUIT) // which has it print where it is
				time.Sleep(time.Second)
				must(t, cmd.Process.Kill())
				<-read
				t.Fatalf("after commit %d no other came for a minute; the writer said last %q", last, said)
			}
			complete = follow(err)
		}
		must(t, cmd.Process.Kill())
		<-read
		_ = cmd.Wait() // it was killed
		if !complete || !follow(nil) {
			return
		}
	}
	must(t, ok[*db.Store](t)(db.Open(dir, nil)).Close())
	w := ok[*db.Store](t)(db.Open(dir, nil))
	must(t, w.String("last").Put([]byte("1")))
	must(t, w.Close())
	must(t, drain(t.Context(), f, take))
	w = ok[*db.Store](t)(db.Open(dir, &db.Options{ReadOnly: true}))
	defer func() { must(t, w.Close()) }()
	equal(t, "the last sequence number", last, w.Position())
	sameContent(t, m, w)
}
