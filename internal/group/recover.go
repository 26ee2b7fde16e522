package group

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Noted is what a member keeps of the record in its own store, for the day on which the service has lost it: what it knows, noted
// before it acts on that, and a swap, noted before it is asked for. See Noting.
type Noted struct {
	Group string    `json:"group"`
	Known Versioned `json:"known"`
	Tried *Swap     `json:"tried,omitempty"` // of Known's version; its outcome was not known
}

func compareVersions(a, b Versioned) int {
	return cmp.Or(cmp.Compare(a.Term, b.Term), cmp.Compare(a.Version, b.Version))
}

func (n Noted) String() string {
	text, _ := json.Marshal(n) // of strings and numbers
	return string(text)
}

// ParseNoted parses what String has returned.
func ParseNoted(text []byte) (n Noted, err error) {
	return n, json.Unmarshal(text, &n)
}

// Witness is a member that can be asked what it has noted. It runs, and has not been the primary or followed one since the record was lost.
type Witness struct {
	Member
	Noted Noted
}

// Recover returns the record to be made where the service has none any more, from what members have noted. Each one in it has all that
// was acknowledged. It needs all that were in sync by the newest record noted, and by a swap of that which may have been carried out:
// whoever made a later record was one of these, and has noted that. Those of lost are given up: the caller knows that no later record was made
// by them, or takes the loss of what was acknowledged since.
func Recover(witnesses []Witness, lost ...string) (Record, error) {
	var newest Versioned
	for _, w := range witnesses {
		if compareVersions(w.Noted.Known, newest) > 0 {
			newest = w.Noted.Known
		}
	}
	if newest.Version == 0 {
		return Record{}, errors.New("nobody has noted a record: begin the group with --bootstrap")
	}
	r := newest.Record
	needed := slices.Clone(r.InSync)
	for _, w := range witnesses {
		if t := w.Noted.Tried; t != nil && compareVersions(w.Noted.Known, newest) == 0 {
			needed = append(needed, t.Record.InSync...)
			r.Term = max(r.Term, t.Record.Term)
		}
	}
	var wrong []error
	there := func(m Member) bool {
		return slices.ContainsFunc(witnesses, func(w Witness) bool { return w.Member == m })
	}
	for i, m := range needed {
		if there(m) || slices.Contains(lost, m.ID) || slices.Contains(needed[:i], m) {
			continue
		}
		err := fmt.Errorf("%s is missing: it may know a later record", m.ID)
		if slices.ContainsFunc(witnesses, func(w Witness) bool { return w.ID == m.ID }) {
			err = fmt.Errorf("%s may have lost what it had acknowledged, in a loss of power or with its directory", m.ID)
		}
		wrong = append(wrong, err)
	}
	r.Term++
	r.InSync = slices.DeleteFunc(slices.Clone(r.InSync), func(m Member) bool { return !there(m) })
	if len(r.InSync) == 0 && len(wrong) == 0 {
		wrong = append(wrong, errors.New("nobody is left that was in sync"))
	}
	if len(r.InSync) > 0 && !slices.ContainsFunc(r.InSync, func(m Member) bool { return m.ID == r.Primary }) {
		r.Primary = r.InSync[0].ID
	}
	return r, errors.Join(wrong...)
}
