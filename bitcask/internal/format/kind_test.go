package format

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stavedb/stave/keydir"
)

// TestEveryKindHasRows: and each of them is complete, and agrees with what all records of its kind have in common.
func TestEveryKindHasRows(t *testing.T) {
	seen := map[Kind]*Row{}
	for i := range table {
		r := &table[i]
		bad := func(what string) { t.Errorf("kind %d, types %v: %s", r.Kind, r.types, what) }
		if r.Text == "" || r.Home == NoHome || len(r.types) == 0 {
			bad("not complete")
		}
		if first := seen[r.Kind]; first == nil {
			seen[r.Kind] = r
		} else if r.Text != first.Text || r.Removes != first.Removes || (r.Home == HomeLeader) != (first.Home == HomeLeader) || (r.Home == HomeSlot) != (first.Home == HomeSlot) {
			bad("other rows of the kind say otherwise")
		}
		if (r.Leader != 0) != (r.Home == HomeLeader) {
			bad("a leader, and does not follow, or the other way")
		}
		if r.Removes && r.Value != NoValue || r.Home == HomeKey && !r.Removes {
			bad("a tombstone with a value, or a whole key that has a location")
		}
		element := r.Home == HomeElement || r.Home == HomeAlongside
		if element != (r.Part > PartText) {
			bad("its name does not say which element it is about, or of something else")
		}
		if scored := r.Part == PartScored || r.Part == PartGroups; element && r.Located() && scored != (r.Value != NoValue) {
			bad("an element with a score that nothing says, or the other way")
		}
		for _, typ := range r.types {
			if got := RowOf(r.Kind, typ); got.Kind != r.Kind || got.Home != r.Home || !ValidKind(r.Kind, typ) {
				bad("found another row than its own")
			}
			if (r.Needs == NeedsExtended) != InSecond(TagOf(r.Kind, typ)) || (r.Needs == NeedsSystem) != (r.Home == HomeSystem) {
				bad("not announced by the bit of the manifest for its tag")
			}
			if r.Located() && LocatedBy(r.Home, typ) != RowOf(r.Kind, typ) {
				bad("two rows for one place of the index")
			}
			if by := LocatedBy(r.Home, typ); r.Removes && element && by.Part != r.Part {
				bad("a tombstone that names its element in another way")
			}
		}
	}
	for k := Kind(1); k < KindExtended; k++ {
		if seen[k] == nil {
			t.Errorf("kind %d has no row", k)
		}
	}
	if ValidKind(KindExtended, keydir.Stream) || ValidKind(0, keydir.None) || ValidKind(KindFree, keydir.Hash) || ValidKind(most+1, most+1) {
		t.Error("a kind that nobody knows has a row")
	}
}

// TestFormatPageSaysWhatRowsSay: section 1 of docs/FORMAT.md names each kind by its number, and its table of effects
// says of each row what the row does (I12).
func TestFormatPageSaysWhatRowsSay(t *testing.T) {
	page, err := os.ReadFile("../../../docs/FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	names := map[Kind]string{} // as the page has them
	for _, cells := range tableOf(t, string(page), "| kind | no. | type tag |") {
		if n, err := strconv.Atoi(cells[1]); err == nil {
			names[Kind(n)] = cells[0]
		}
	}
	effects := map[string]string{}
	for _, cells := range tableOf(t, string(page), "| record | what it replaces") {
		effects[cells[0]] = cells[1]
	}
	used := map[string]bool{}
	for i := range table {
		record, effect := effectOf(&table[i])
		name := strings.TrimSuffix(names[table[i].Kind], " tombstone")
		if name == "" || !strings.Contains(record, name) && table[i].Hides != HidesGroup {
			t.Errorf("%q: the page has no kind %d, or calls it %q", record, table[i].Kind, name)
		}
		if !strings.Contains(effects[record], effect) {
			t.Errorf("the page says of %q: %q, and not %q", record, effects[record], effect)
		}
		used[record] = true
	}
	others := []string{ // of no single row
		"element or meta of another type than the key's, chunk of another size", "consumer tombstone, `C`", "any, replayed on top of an INDEX section that has it already",
	}
	for record := range effects {
		if !used[record] && !slices.Contains(others, record) {
			t.Errorf("no row does what the page says of %q", record)
		}
	}
}

// effectOf is where the page says what a row does, and how.
func effectOf(r *Row) (record, effect string) {
	const elements, tombstones = "element, meta, deadline, field deadline", "element, deadline and field deadline tombstones"
	switch r.Hides {
	case HidesContent:
		return "string", "all that its key has had, but the deadline"
	case HidesKey:
		return "tombstone", "all with its key"
	case HidesDeadline:
		return tombstones, "and the deadline of the field"
	case HidesEntries:
		return "meta of a stream", "entries with ids before *first*"
	case HidesGroup:
		return "group tombstone, `G`", "consumers and pending entries of a group, and the group"
	case HidesRange:
		return "element tombstone of a list", "the elements with a place in its name, or between the two"
	case HidesSpaces:
		return "namespaces", "spaces that it does not name"
	}
	switch {
	case r.Home == HomeLeader:
		return "order, bound", "nothing of its own"
	case r.Home == HomeSystem:
		return "system", "the record of the same name"
	case r.Removes:
		return tombstones, "the record of that name"
	}
	return elements, "the record of the same name"
}

// tableOf is the cells of the rows of a table whose head begins so.
func tableOf(t *testing.T, page, head string) (rows [][]string) {
	t.Helper()
	_, rest, found := strings.Cut(page, head)
	for i, line := range strings.Split(rest, "\n") {
		if i > 1 && !strings.HasPrefix(line, "|") {
			break
		}
		if i > 1 {
			cells := strings.Split(strings.Trim(line, "|"), "|")
			for j := range cells {
				cells[j] = strings.TrimSpace(cells[j])
			}
			rows = append(rows, cells)
		}
	}
	if !found || len(rows) == 0 {
		t.Fatalf("docs/FORMAT.md has no table %q", head)
	}
	return rows
}
