package format

import (
	"fmt"

	"github.com/stavedb/stave/keydir"
)

// Kind says what a record is. Together with the namespace, the length of the
// user key and the name bytes it is the record's identity: the name alone is
// ambiguous ("hash:a:b:c"), the identity never is.
type Kind uint8

// The kinds of records. Their numbers are part of the format. What the rest of the store needs to know of
// a kind is in its rows of the table below: nobody else compares kinds.
const (
	KindString            Kind = 1  // string:{key} -> value; replaces whatever the key held
	KindElement           Kind = 2  // {type}:{key}:{element} -> value
	KindMeta              Kind = 3  // {type}:{key}:__len__ -> count; of a string in chunks: length and count
	KindBound             Kind = 4  // list:{key}:__head__ and __tail__ -> index; follow their KindMeta
	KindOrder             Kind = 5  // zset:{key}:s:{score}:{member} -> empty; follows its KindElement
	KindDeadline          Kind = 6  // ttl:{key} -> Unix milliseconds
	KindTombstone         Kind = 7  // {type}:{key}: the key is gone, whole, with its deadline
	KindElementTombstone  Kind = 8  // {type}:{key}:{element}: the element is gone
	KindDeadlineTombstone Kind = 9  // ttl:{key}: the deadline is gone, the key stays
	KindNamespaces        Kind = 10 // stave:namespaces -> which directory each namespace uses
	KindFieldDeadline     Kind = 11 // ttl:{key}:{field} -> Unix milliseconds; goes with the field

	// ttl:{key}:{field}: the deadline is gone, the field stays
	KindFieldDeadlineTombstone Kind = 12

	// KindSystem is what the store notes of itself, by name: stave:{name} -> value.
	KindSystem Kind = 13

	// KindExtended is the kind in the tag of records whose kind and type one more byte
	// states, those of streams. No Record or Entry that is known has it.
	KindExtended Kind = 14
	KindFree     Kind = 15 // not written yet
)

// Row describes the records of a kind that are about some types.
type Row struct {
	Kind    Kind
	Text    string // what the record is about, for people
	Home    Home
	Removes bool  // a tombstone: the index has no location of it, and merges keep it while it may hide something
	Part    Part  // what its name has after the key
	Value   Value // what its value says to the index
	Hides   Hides
	Leader  Kind // of HomeLeader: which record it follows
	Expiry  bool // it says which deadline its key has, if any
	Needs   Needs

	types []keydir.Type
}

// Home is where in the index the fact is that a record states or removes.
type Home uint8

const (
	NoHome         Home = iota // there are no such records
	HomeSlot                   // a slot of the directory, of the record's type
	HomeElement                // an element of the key's collection
	HomeAlongside              // an element of the collection of the record's type that stands alongside the key's content
	HomeMeta                   // the key's collection itself
	HomeKey                    // all that the key has
	HomeLeader                 // none: it shares fate and location of the record before it
	HomeNamespaces             // the map of namespaces
	HomeSystem                 // the system records, by name
)

// Part is how the part of a name after the key is read, and so how the index finds what it is about.
type Part uint8

const (
	NoPart     Part = iota
	PartEmpty       // there, and always empty
	PartText        // one of the texts below, or repeats what its leader says
	PartName        // the name of a field or a member
	PartScored      // the same, in a collection with scores
	PartGroups      // the same, of groups of a stream; of a tombstone also a range of them
	PartIndex       // the place of an element of a list; of a tombstone also a range of them
	PartChunk       // the index of a chunk
	PartEntry       // the id of an entry of a stream
)

// Value is what the index needs of the value of a record; hints repeat it then.
type Value uint8

const (
	NoValue         Value = iota
	ValueScore            // the score of a member
	ValueDeadline         // Unix milliseconds
	ValueGroups           // of a group, a consumer or a pending entry: the score depends on it
	ValueStream           // the meta record of a stream
	ValueNamespaces       // the map of namespaces
	ValueSystem           // of a system record
)

// Hides is what a record makes of no use besides older records of its own name (I12).
type Hides uint8

const (
	HidesNothing  Hides = iota
	HidesContent        // all that its key has, but the deadline
	HidesKey            // all that its key has
	HidesDeadline       // the deadline of the field
	HidesEntries        // entries of a stream with ids before the First of its value
	HidesGroup          // of a range: all elements within
	HidesRange          // of a range of places: all elements within
	HidesSpaces         // spaces that it does not name
)

// Needs is which bits of the manifest announce records, in package manifest.
type Needs uint8

const (
	NeedsNothing Needs = iota
	NeedsSystem
	NeedsExtended
	NeedsRanges      // of a tombstone of a range of indexes: see Identity.Needs
	NeedsPlaces      // of an element of a list that has a sub-index, and its tombstone
	NeedsPlaceRanges // both, of a tombstone of a range
)

// table is the descriptor of all records. docs/FORMAT.md, section 1, says the same in words; a test compares them.
var table = []Row{
	{Kind: KindString, Text: "string", types: types(keydir.String), Home: HomeSlot, Hides: HidesContent},

	{Kind: KindElement, Text: "element", types: types(keydir.Hash, keydir.Set), Home: HomeElement, Part: PartName},
	{Kind: KindElement, Text: "element", types: types(keydir.ZSet), Home: HomeElement, Part: PartScored, Value: ValueScore},
	{Kind: KindElement, Text: "element", types: types(keydir.List), Home: HomeElement, Part: PartIndex},
	{Kind: KindElement, Text: "element", types: types(keydir.Chunks), Home: HomeElement, Part: PartChunk},
	{Kind: KindElement, Text: "element", types: types(keydir.Stream), Home: HomeElement, Part: PartEntry, Needs: NeedsExtended},
	{Kind: KindElement, Text: "element", types: types(keydir.StreamGroups), Home: HomeAlongside, Part: PartGroups, Value: ValueGroups, Needs: NeedsExtended},

	{Kind: KindMeta, Text: "count", types: types(keydir.Hash, keydir.List, keydir.Set, keydir.ZSet, keydir.Chunks), Home: HomeMeta, Part: PartText},
	{Kind: KindMeta, Text: "count", types: types(keydir.Stream), Home: HomeMeta, Part: PartText, Value: ValueStream, Hides: HidesEntries, Needs: NeedsExtended},

	{Kind: KindBound, Text: "bound", types: types(keydir.List), Home: HomeLeader, Part: PartText, Leader: KindMeta},
	{Kind: KindOrder, Text: "order", types: types(keydir.ZSet), Home: HomeLeader, Part: PartText, Leader: KindElement},

	{Kind: KindDeadline, Text: "deadline", types: types(keydir.Deadline), Home: HomeSlot, Value: ValueDeadline, Expiry: true},
	{Kind: KindDeadlineTombstone, Text: "deadline tombstone", types: types(keydir.Deadline), Home: HomeSlot, Removes: true, Expiry: true},

	{Kind: KindFieldDeadline, Text: "deadline of a field", types: types(keydir.FieldDeadlines), Home: HomeAlongside, Part: PartScored, Value: ValueDeadline},
	{Kind: KindFieldDeadlineTombstone, Text: "tombstone of a field's deadline", types: types(keydir.FieldDeadlines), Home: HomeAlongside, Part: PartScored, Removes: true},

	{Kind: KindTombstone, Text: "tombstone", types: types(keydir.String, keydir.Chunks, keydir.Hash, keydir.List, keydir.Set, keydir.ZSet), Home: HomeKey, Removes: true, Hides: HidesKey, Expiry: true},
	{Kind: KindTombstone, Text: "tombstone", types: types(keydir.Stream), Home: HomeKey, Part: PartEmpty, Removes: true, Hides: HidesKey, Expiry: true, Needs: NeedsExtended},

	{Kind: KindElementTombstone, Text: "element tombstone", types: types(keydir.Hash), Home: HomeElement, Part: PartName, Removes: true, Hides: HidesDeadline},
	{Kind: KindElementTombstone, Text: "element tombstone", types: types(keydir.Set), Home: HomeElement, Part: PartName, Removes: true},
	{Kind: KindElementTombstone, Text: "element tombstone", types: types(keydir.ZSet), Home: HomeElement, Part: PartScored, Removes: true},
	{Kind: KindElementTombstone, Text: "element tombstone", types: types(keydir.List), Home: HomeElement, Part: PartIndex, Removes: true, Hides: HidesRange},
	{Kind: KindElementTombstone, Text: "element tombstone", types: types(keydir.Stream), Home: HomeElement, Part: PartEntry, Removes: true, Needs: NeedsExtended},
	{Kind: KindElementTombstone, Text: "element tombstone", types: types(keydir.StreamGroups), Home: HomeAlongside, Part: PartGroups, Removes: true, Hides: HidesGroup, Needs: NeedsExtended},

	{Kind: KindNamespaces, Text: "namespaces", types: types(keydir.None), Home: HomeNamespaces, Value: ValueNamespaces, Hides: HidesSpaces},
	{Kind: KindSystem, Text: "system", types: types(keydir.None), Home: HomeSystem, Value: ValueSystem, Needs: NeedsSystem},
}

func types(list ...keydir.Type) []keydir.Type { return list }

// most is how many kinds and types there may be: both have four bits at most.
const most = 16

// rows is the table by kind and type; sets are what all rows of a kind have in common.
var rows, sets = func() (rows [most][most]Row, sets struct{ tombstones, followers, slots, parts kindSet }) {
	for _, r := range table {
		for _, t := range r.types {
			rows[r.Kind][t] = r
		}
		sets.tombstones.add(r.Kind, r.Removes)
		sets.followers.add(r.Kind, r.Home == HomeLeader)
		sets.slots.add(r.Kind, r.Located() && r.Home == HomeSlot)
		sets.parts.add(r.Kind, r.Part > PartEmpty)
	}
	return rows, sets
}()

// kindSet is a set of kinds, one bit each.
type kindSet uint16

func (s *kindSet) add(k Kind, is bool) {
	if is {
		*s |= 1 << k
	}
}

func (s kindSet) has(k Kind) bool { return s>>k&1 != 0 }

// RowOf is the row of a kind and a type; its Home is NoHome if they cannot stand together.
func RowOf(k Kind, t keydir.Type) *Row { return &rows[k%most][t%most] }

// Row is that of the record.
func (id *Identity) Row() *Row { return RowOf(id.Kind, id.Type) }

// Needs is which bits of the manifest announce the record.
func (id *Identity) Needs() Needs {
	row := id.Row()
	if row.Part == PartIndex {
		return needsOfPlaces(id.Elem)
	}
	return row.Needs
}

// Located reports whether the index has a location of a live record.
func (r *Row) Located() bool { return !r.Removes && r.Home != HomeLeader }

// InCollection reports whether that is in a collection, for which it takes the names of key and element to find it.
func (r *Row) InCollection() bool {
	return r.Located() && (r.Home == HomeElement || r.Home == HomeAlongside || r.Home == HomeMeta)
}

// OfStripe reports whether the record concerns the stripe of its key alone.
func (r *Row) OfStripe() bool { return r.Home != HomeNamespaces && r.Home != HomeSystem }

// Grows reports whether the record adds content, and does not only count or remove some.
func (r *Row) Grows() bool {
	return r.Located() && r.Home != HomeMeta && r.Home != HomeNamespaces
}

// LocatedBy is the row of the records that a home has the locations of, for a type of slot or collection.
func LocatedBy(home Home, t keydir.Type) *Row {
	for k := range rows {
		if r := &rows[k][t%most]; r.Home == home && r.Located() {
			return r
		}
	}
	return &rows[0][0]
}

// String returns what a record of the kind is about, such as "element".
func (k Kind) String() string {
	for i := range table {
		if table[i].Kind == k {
			return table[i].Text
		}
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// HasElement reports whether names of this kind carry a part after the key.
func (k Kind) HasElement() bool { return sets.parts.has(k) || k.Extended() }

// Extended reports whether records of this kind name kind and type in one more byte.
func (k Kind) Extended() bool { return k == KindExtended || k == KindFree }

// Follows reports whether records of this kind share the fate and the
// location of the record written just before them.
func (k Kind) Follows() bool { return sets.followers.has(k) }

// Plain reports whether the index has a slot for each live record of this kind.
func (k Kind) Plain() bool { return sets.slots.has(k) }

// Tombstone reports whether records of this kind only remove something.
func (k Kind) Tombstone() bool { return sets.tombstones.has(k) }

// ValidKind reports whether kind and type can stand together.
func ValidKind(k Kind, t keydir.Type) bool { return k < most && t < most && rows[k][t].Home != NoHome }

// Inlined reports whether the keydir needs the value of such a record.
func Inlined(k Kind, t keydir.Type) bool { return RowOf(k, t).Value != NoValue }
