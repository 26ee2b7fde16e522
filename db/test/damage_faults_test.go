package db_test

import (
	"bytes"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/stavedb/stave/internal/test/crash"
)

// fault is one change to the files of a store that the store has not made.
type fault struct {
	kind     faultKind
	file     string
	what     string
	state    crash.State
	from, to int // the bytes of the file that have changed; to is its new or old end, whichever is longer, after a cut
}

type faultKind int

// The kinds, in the order of the table.
const (
	flipped   faultKind = iota // one bit
	changed3                   // three bytes, which no single bit explains
	cutOff                     // the file ends sooner
	zeroed                     // zeros from somewhere to the end
	swapped                    // two neighbouring sectors in each other's place
	reverted                   // a sector as it was some time before
	grafted                    // a sector of another file, or of another store
	exchanged                  // the whole file: missing, empty, as it was before, another store's
	faultKinds
)

func (k faultKind) String() string {
	return [...]string{
		"one bit flipped", "three bytes changed", "cut off at a length", "zeros from a place to the end", "two sectors swapped",
		"a sector as it was before", "a sector of another file", "the whole file exchanged",
	}[k]
}

const sectorSize = 512

// faults ranges over all faults of one kind that change the bytes of a file. turn says which share of the flips, cuts
// and zeros comes: those whose number leaves this remainder.
func (v *victim) faults(kind faultKind, file string, stride, turn int) iter.Seq[fault] {
	was := v.state[file]
	return func(yield func(fault) bool) {
		n := 0
		try := func(what string, now []byte) bool {
			if bytes.Equal(now, was) {
				return true
			}
			n++
			if n%stride != turn%stride && kind <= zeroed {
				return true
			}
			f := fault{kind: kind, file: file, what: fmt.Sprintf("%s: %s: %s", v.name, file, what), state: maps.Clone(v.state)}
			f.state[file] = now
			f.from, f.to = changed(was, now)
			return yield(f)
		}
		switch kind {
		case flipped, changed3, cutOff, zeroed:
			v.byteFaults(kind, was, try)
		case swapped, reverted, grafted:
			v.sectorFaults(kind, file, try)
		case exchanged:
			without := maps.Clone(v.state)
			delete(without, file)
			f := fault{kind: kind, file: file, what: v.name + ": " + file + ": missing", state: without, to: len(was)}
			_ = yield(f) && try("empty", nil) && try("as before", v.before[file]) && try("of another store", v.other[file])
		}
	}
}

func (v *victim) byteFaults(kind faultKind, was []byte, try func(what string, now []byte) bool) {
	for at := range was {
		switch kind {
		case flipped:
			for bit := range 8 {
				now := slices.Clone(was)
				now[at] ^= 1 << bit
				if !try(fmt.Sprintf("bit %d of byte %d", bit, at), now) {
					return
				}
			}
		case changed3:
			now := slices.Clone(was)
			for i := at; i < min(at+3, len(now)); i++ {
				now[i] ^= 0xa5
			}
			if !try(fmt.Sprintf("bytes from %d changed", at), now) {
				return
			}
		case cutOff:
			if !try(fmt.Sprintf("cut at %d", at), was[:at:at]) {
				return
			}
		case zeroed:
			now := append(slices.Clone(was[:at]), make([]byte, len(was)-at)...)
			if !try(fmt.Sprintf("zeros from %d", at), now) {
				return
			}
		}
	}
}

func (v *victim) sectorFaults(kind faultKind, file string, try func(what string, now []byte) bool) {
	was := v.state[file]
	for at := 0; at < len(was); at += sectorSize {
		put := func(what string, sector []byte) bool {
			now := slices.Clone(was)
			n := copy(now[at:min(at+sectorSize, len(now))], sector)
			clear(now[at+n : min(at+sectorSize, len(now))])
			return try(fmt.Sprintf("sector at %d %s", at, what), now)
		}
		more := true
		switch next := at + sectorSize; kind {
		case swapped:
			if next < len(was) {
				now := slices.Clone(was)
				n := copy(now[at:], was[next:min(next+sectorSize, len(was))])
				copy(now[at+n:], was[at:at+sectorSize])
				more = try(fmt.Sprintf("sectors at %d and %d swapped", at, next), now)
			}
		case reverted:
			more = put("as before", sectorOf(v.before[file], at))
		case grafted:
			more = put("of another store", sectorOf(v.other[file], at))
			for _, from := range v.names() {
				more = more && (from == file || put("of "+from, sectorOf(v.state[from], at)))
			}
		}
		if !more {
			return
		}
	}
}

// sectorOf is the sector at an offset, or what there is of it.
func sectorOf(b []byte, at int) []byte { return b[min(at, len(b)):min(at+sectorSize, len(b))] }

// changed is where two contents begin to differ, and where they have ceased to.
func changed(was, now []byte) (from, to int) {
	for from < min(len(was), len(now)) && was[from] == now[from] {
		from++
	}
	if to = max(len(was), len(now)); len(was) == len(now) {
		for to > from && was[to-1] == now[to-1] {
			to--
		}
	}
	return from, to
}
