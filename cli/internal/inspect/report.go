package inspect

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stavedb/stave/cli/internal/humanize"
	"github.com/stavedb/stave/db"
)

// A Report is what there is to draw. Its JSON is an interface: programs read it.
type Report struct {
	Dir        string    `json:"dir"`
	StoreID    string    `json:"store_id"`
	Time       time.Time `json:"time"`
	Sequence   uint64    `json:"sequence"`
	Bytes      int64     `json:"bytes"`
	LiveBytes  int64     `json:"live_bytes"`
	IndexBytes int64     `json:"index_bytes"`
	Segments   []Segment `json:"segments"`
	Merge      Merge     `json:"merge"`
	Keys       db.Survey `json:"keys"`
}

// A Segment is one segment. Live, overwritten and expired bytes add up to its length.
type Segment struct {
	Segment     uint32     `json:"segment"`
	Bytes       int64      `json:"bytes"`
	Live        int64      `json:"live_bytes"`
	Overwritten int64      `json:"overwritten_bytes"`
	Expired     int64      `json:"expired_bytes"`
	Records     uint64     `json:"records"`
	Sealed      bool       `json:"sealed"`
	Merged      bool       `json:"merged"`
	Time        *time.Time `json:"time"` // of its end; null: unknown, or it has not ended
	Hint        string     `json:"hint"` // ok, stale, none, or empty for the active segment
	Taken       bool       `json:"merge"`
	Reason      string     `json:"merge_reason"`
}

func (s *Segment) dead() string { return humanize.Dead(s.Live, s.Bytes, s.Records) }

// age is how long ago the segment ended, at the time of the report.
func (s *Segment) age(now time.Time) string {
	if s.Time == nil {
		return "-"
	}
	return humanize.Age(now.Sub(*s.Time))
}

// A Merge is what the next merge would do, by the default policy: bytes are those of the segments that it would take,
// as of the time of the report.
type Merge struct {
	Due      bool  `json:"due"` // a server would begin it now
	Segments int   `json:"segments"`
	Reads    int64 `json:"reads"`
	Writes   int64 `json:"writes"`
	Reclaims int64 `json:"reclaims"`
}

// longest is the length of the longest segment, or 1, so that it can be divided by.
func (r *Report) longest() int64 {
	longest := int64(1)
	for _, s := range r.Segments {
		longest = max(longest, s.Bytes)
	}
	return longest
}

// perKey is the memory of the index for each key, with those that have expired, since they are in it until they are
// deleted.
func (r *Report) perKey() string { return humanize.PerKey(r.IndexBytes, r.Keys.Keys+r.Keys.Expired) }

// forecast says what the next merge would do, as half a sentence that both pictures end with.
func (r *Report) forecast() string {
	m := r.Merge
	if m.Segments == 0 {
		return "nothing to merge"
	}
	when := "merge would"
	if !m.Due {
		when = "no merge is due, one would"
	}
	return fmt.Sprintf("%s reclaim %s in %d of %s, write %s", when, humanize.Size(m.Reclaims), m.Segments, humanize.Plural(len(r.Segments), "segment"), humanize.Size(m.Writes))
}

// groupName names a group of keys, in at most n characters. The one without a prefix is what belongs to no group.
func groupName(p db.SurveyPrefix, n int) string {
	if p.Prefix == "" {
		return "(others)"
	}
	return humanize.Name(p.Prefix, n)
}

// Look looks at every key of a store, without reading values, and lists as many of the biggest keys and groups.
// progress is called now and then with the number of keys so far. The survey comes first: it finds out whether the
// store can be read.
func Look(ctx context.Context, store *db.Store, biggest int, progress func(keys int)) (*Report, error) {
	keys, err := store.Survey(ctx, db.SurveyOptions{Biggest: biggest, Prefixes: biggest, Progress: progress})
	if err != nil {
		return nil, err
	}
	st := store.Stats()
	plan := store.Merger().Plan(false)
	seen := &Report{
		Dir: st.Dir, StoreID: st.StoreID, Time: time.Now().Truncate(time.Millisecond), Sequence: st.Sequence, Bytes: st.Bytes, LiveBytes: st.LiveBytes, IndexBytes: st.IndexBytes,
		Merge: Merge{Due: plan.Triggered && len(plan.IDs()) > 0, Segments: len(plan.IDs()), Reads: plan.Reads, Writes: plan.Writes, Reclaims: plan.Reclaims},
		Keys:  keys,
	}
	// By segment: what the survey found of keys whose deadline has passed.
	expired := map[uint32]int64{}
	for _, s := range keys.Segments {
		expired[s.Segment] = s.ExpiredBytes
	}
	// Hints that the opening has refused, by file name.
	stale := store.Log().Recovery().Stale
	for _, c := range plan.Choices {
		s := Segment{
			Segment: c.ID, Bytes: c.Bytes, Live: min(c.LiveBytes, c.Bytes), Records: c.Records, Sealed: c.Sealed, Merged: c.Merged, Taken: c.Taken, Reason: c.Reason,
			Hint: hintState(st.Dir, c.File, c.Sealed, stale),
		}
		if !c.Time.IsZero() {
			s.Time = &c.Time
		}
		// The size of an expired record is known within an eighth: it never makes a segment longer than it is.
		s.Expired = min(expired[c.ID], s.Live)
		s.Live, s.Overwritten = s.Live-s.Expired, s.Bytes-s.Live
		if s.Records == 0 { // a header is no garbage
			s.Live, s.Overwritten = s.Bytes, 0
		}
		seen.Segments = append(seen.Segments, s)
	}
	return seen, nil
}

// hintState says whether a sealed segment has a hint file that the opening could use. "ok" means that nothing was found
// wrong: an opening by the INDEX reads no hints.
func hintState(dir, file string, sealed bool, stale []string) string {
	hint := strings.TrimSuffix(file, ".data") + ".hint"
	switch _, err := os.Stat(filepath.Join(dir, hint)); {
	case !sealed:
		return ""
	case err != nil:
		return "none"
	case slices.Contains(stale, hint):
		return "stale"
	}
	return "ok"
}
