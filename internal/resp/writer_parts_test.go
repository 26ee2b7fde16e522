package resp_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/internal/test/chance"
)

// TestWriterParts: whatever is written, given up and sent in pieces, the bytes are those that a single buffer would
// have had, and the budget has at every moment what the writer holds beyond its allowance, and in the end nothing.
func TestWriterParts(t *testing.T) {
	r := chance.Rand(t)
	budget := &resp.Budget{Allowance: 5 << 18}
	var w resp.Writer
	w.SetBudget(budget)
	var want, got []byte
	send := func(most int) {
		n := min(r.IntN(most+1), len(w.Bytes()))
		got = append(got, w.Bytes()[:n]...)
		w.Discard(n)
	}
	for i := range 1500 {
		w.SetLimit(r.IntN(2) * (1 << 30))
		value := bytes.Repeat([]byte{byte(i)}, r.IntN(1<<r.IntN(20)))
		bulk := fmt.Appendf(nil, "$%d\r\n%s\r\n", len(value), value)
		from := w.Len()
		switch r.IntN(6) {
		case 0:
			w.EndBulk(append(w.BeginBulk(), value...))
			want = append(want, bulk...)
		case 1:
			w.BulkString(string(value))
			want = append(want, bulk...)
		case 2:
			for range r.IntN(10) {
				w.Bulk(value)
			}
			w.Truncate(from)
		case 3:
			mark, n := w.Begin(), r.IntN(20)
			for range n {
				w.Bulk(value)
			}
			w.EndArray(mark, n)
			want = append(fmt.Appendf(want, "*%d\r\n", n), bytes.Repeat(bulk, n)...)
		default:
			w.Bulk(value)
			want = append(want, bulk...)
		}
		if rest := len(want) - len(got); w.Len() != rest {
			t.Fatalf("step %d: %d bytes wait, want %d", i, w.Len(), rest)
		}
		if from <= w.Len() && from < len(want)-len(got) {
			if piece := w.From(from); !bytes.HasPrefix(want[len(got)+from:], piece) || len(piece) == 0 {
				t.Fatalf("step %d: other bytes after the first %d", i, from)
			}
		}
		for range r.IntN(4) {
			send(1 << r.IntN(22))
		}
		beyond := max(w.Held()-budget.Allowance, 0)
		if taken := int(budget.Taken()); taken != w.Taken() || taken > beyond || taken < beyond-beyond/3-512<<10 {
			t.Fatalf("step %d: %d bytes of the budget are taken, and %d are held", i, taken, w.Held())
		}
	}
	for w.Len() > 0 {
		send(1 << 20)
	}
	if !bytes.Equal(got, want) {
		t.Error("other bytes were sent than written")
	}
	if budget.Taken() != 0 || w.Held() > 32<<10 {
		t.Errorf("the drained writer holds %d bytes, and %d of the budget", w.Held(), budget.Taken())
	}
}

// TestBudget: a writer that finds no room writes nothing more and says how much it needs; one without a limit takes it all
// the same; what is given back is reported.
func TestBudget(t *testing.T) {
	const mib = 1 << 20
	budget := &resp.Budget{Allowance: mib}
	budget.SetLimit(4 * mib)
	value := make([]byte, mib/2)
	writers := make([]resp.Writer, 3)
	fill := func(w *resp.Writer, values int) bool {
		w.SetLimit(1 << 30)
		for range values {
			w.Bulk(value)
		}
		return !w.Dropped()
	}
	for i := range writers {
		writers[i].SetBudget(budget)
	}
	a, b, c := &writers[0], &writers[1], &writers[2]
	if !fill(a, 20) {
		t.Fatal("alone, a writer may take more than there is")
	}
	if !fill(b, 1) {
		t.Fatal("what is within the allowance needs no budget")
	}
	if from := b.Len(); fill(b, 4) {
		t.Fatal("the budget has no end")
	} else if b.Short() < mib || b.Short() > 4*mib || b.Held() > budget.Allowance+len(value)+1000 {
		t.Fatalf("short of %d, holds %d", b.Short(), b.Held())
	} else {
		b.Truncate(from)
	}
	b.SetLimit(0)
	for range 4 {
		b.Bulk(value)
	}
	if before := budget.Taken(); b.Len() < 4*len(value) || before <= 10*mib {
		t.Fatalf("a reply that must not be given up was, or takes nothing: %d bytes", before)
	}
	given := 0
	budget.Given = func() { given++ }
	a.Close()
	if given == 0 || budget.HasRoom(4*mib) || !budget.HasRoom(mib) {
		t.Fatalf("%d calls, %d bytes taken", given, budget.Taken())
	}
	if !fill(c, 4) {
		t.Fatal("there is room, and nobody gets it")
	}
	b.Close()
	c.Close()
	if budget.Taken() != 0 || b.Held()+c.Held() != 0 {
		t.Errorf("%d bytes are left", budget.Taken())
	}
}

// TestReserve: what a value takes before it is written is in the budget, and is the writer's when it has been written.
func TestReserve(t *testing.T) {
	b := &resp.Budget{Allowance: 1 << 20}
	b.SetLimit(8 << 20)
	var w, other resp.Writer
	w.SetBudget(b)
	other.SetBudget(b)
	w.SetLimit(64 << 20)
	other.SetLimit(64 << 20)
	const n = 6 << 20
	if !w.Reserve(n-1) || !w.Reserve(n) || b.Taken() != n-1<<20 || w.Reserved() != n {
		t.Fatalf("taken: %d", b.Taken())
	}
	if other.Reserve(n) {
		t.Error("there is room for another as long")
	}
	if short := other.Short(); short != n-1<<20 {
		t.Errorf("short of %d", short)
	}
	w.EndBulk(append(w.BeginBulk(), make([]byte, n)...))
	if b.Taken() != int64(w.Taken()) || w.Len() < n || w.Taken() < n-1<<20 || w.Reserved() != 0 {
		t.Errorf("%d bytes, taken: %d, by the writer %d", w.Len(), b.Taken(), w.Taken())
	}
	w.Discard(w.Len())
	if b.Taken() != 0 {
		t.Errorf("%d bytes are taken when all is sent", b.Taken())
	}
	if !w.Reserve(n) {
		t.Error("no room")
	}
	w.Reserve(0)
	if b.Taken() != 0 {
		t.Errorf("%d bytes are taken when they have been given back", b.Taken())
	}
}

// TestWholeWriter: a writer that keeps everything in one buffer takes what the buffer has, while it grows the old one
// too, asks whoever lends, and gives it back.
func TestWholeWriter(t *testing.T) {
	const mib = 1 << 20
	lendable, most := 1<<30, int64(0)
	b := &resp.Budget{Allowance: resp.PartSize, Whole: true}
	b.Lend = func(n int) bool {
		most = max(most, b.Taken()+int64(n))
		return b.Taken()+int64(n) <= int64(lendable)
	}
	var w resp.Writer
	w.SetBudget(b)
	w.SetLimit(1 << 30)
	w.Array(64)
	for range 64 {
		w.Bulk(make([]byte, mib))
		if beyond := w.Held() - b.Allowance; int(b.Taken()) > max(beyond, 0) || int(b.Taken()) < beyond*3/4 {
			t.Fatalf("%d bytes are held, and %d taken", w.Held(), b.Taken())
		}
	}
	if w.Dropped() || len(w.Bytes()) != w.Len() || w.Len() < 64*mib || most < int64(w.Held()) {
		t.Fatalf("%d bytes of %d, %d taken at most", len(w.Bytes()), w.Len(), most)
	}
	lendable = 65 * mib
	from := w.Len()
	for range 64 {
		w.Bulk(make([]byte, mib))
	}
	if !w.Dropped() || int(b.Taken()) > w.Held() {
		t.Errorf("%d bytes are held without room, and %d are taken", w.Held(), b.Taken())
	}
	w.Truncate(from)
	w.Discard(from)
	if b.Taken() != 0 || w.Held() > mib {
		t.Errorf("%d bytes are taken, and %d held, when all is gone", b.Taken(), w.Held())
	}
}

// TestBeginBulkAsksFirst: what a short value at the end of a long reply that is kept whole needs is asked for before it is
// there.
func TestBeginBulkAsksFirst(t *testing.T) {
	const mib = 1 << 20
	room := 1 << 40
	b := &resp.Budget{Allowance: resp.PartSize, Whole: true}
	b.Lend = func(n int) bool { return b.Taken()+int64(n) <= int64(room) }
	var w resp.Writer
	w.SetBudget(b)
	w.SetLimit(1 << 30)
	w.EndBulk(append(w.BeginBulk(), "1-1"...))
	for w.Len() < 31*mib {
		w.Bulk(make([]byte, mib))
	}
	for left := cap(w.Bytes()) - w.Len() - 48; left > 0; left -= mib {
		w.Bulk(make([]byte, max(0, min(mib, left)-24)))
	}
	room = int(b.Taken()) // from now on there is none
	for range 40 {
		before := w.Held()
		p := append(w.BeginBulk(), "12345-1"...)
		if cap(p) > before && b.Taken()+resp.PartSize < int64(cap(p)) {
			t.Fatalf("a buffer of %d KiB besides one of %d, and %d are taken", cap(p)>>10, before>>10, b.Taken()>>10)
		}
		if w.EndBulk(p); w.Dropped() {
			return
		}
	}
	t.Error("nothing was refused")
}

// TestWholeWriterExpectsNothing: after long replies a short one asks nobody for the memory that another long one would take.
func TestWholeWriterExpectsNothing(t *testing.T) {
	const mib = 1 << 20
	asked := 0
	b := &resp.Budget{Allowance: resp.PartSize, Whole: true, Lend: func(n int) bool { asked += n; return true }}
	var w resp.Writer
	w.SetBudget(b)
	w.SetLimit(1 << 30)
	for range 3 {
		w.EndBulk(append(w.BeginBulk(), make([]byte, 4*mib)...))
		if w.Discard(w.Len()); b.Taken() != 0 {
			t.Fatalf("%d bytes are taken", b.Taken())
		}
	}
	asked = 0
	w.EndBulk(append(w.BeginBulk(), "short"...))
	w.Discard(w.Len())
	w.Bulk(make([]byte, 32<<10))
	if asked != 0 || w.Len() < 32<<10 {
		t.Errorf("%d bytes were asked for", asked)
	}
}

// TestReserveAgain: what is reserved takes the place of what was, and a refusal has no consequence.
func TestReserveAgain(t *testing.T) {
	b := &resp.Budget{}
	b.SetLimit(8 << 20)
	var w, other resp.Writer
	w.SetBudget(b)
	other.SetBudget(b)
	w.SetLimit(64 << 20)
	other.SetLimit(64 << 20)
	if !w.Reserve(6<<20) || !w.Reserve(2<<20) || b.Taken() != 2<<20 || !other.Reserve(5<<20) || b.Taken() != 7<<20 {
		t.Fatalf("taken: %d", b.Taken())
	}
	if w.Reserve(4<<20) || w.Dropped() || w.Short() != 4<<20 || b.Taken() != 7<<20 {
		t.Errorf("dropped: %v, short of %d, taken: %d", w.Dropped(), w.Short(), b.Taken())
	}
	if !w.Reserve(1<<20) || w.Short() != 0 {
		t.Errorf("short of %d when there is room", w.Short())
	}
	w.Reserve(0)
	if other.Reserve(0); b.Taken() != 0 {
		t.Errorf("taken: %d", b.Taken())
	}
}

// TestShortReplyIsNotTooLong: a reply that the budget has no room for is too long by its own length alone, not by what
// else its writer has taken or reserved. Nothing that follows is written, and it says what it needs.
func TestShortReplyIsNotTooLong(t *testing.T) {
	const mib = 1 << 20
	b := &resp.Budget{}
	b.SetLimit(16 * mib)
	var other, w resp.Writer
	other.SetBudget(b)
	w.SetBudget(b)
	other.SetLimit(64 * mib)
	if !other.Reserve(12 * mib) {
		t.Fatal("no room")
	}
	fill := func(values int) {
		w.SetLimit(16 * mib)
		w.Reserve(6 * mib)
		for range values {
			w.Bulk(make([]byte, 2*mib-50))
		}
	}
	if fill(7); !w.Dropped() || w.Exceeded() {
		t.Errorf("14 MiB of 16: dropped %v, too long %v", w.Dropped(), w.Exceeded())
	}
	short, written := w.Short(), w.Len()
	w.Int(1)
	w.EndBulk(append(w.BeginBulk(), "short"...))
	if w.Reserve(mib) || w.Short() < short || short < 13*mib || w.Len() != written {
		t.Errorf("short of %d, then of %d; %d bytes are written, then %d", short, w.Short(), written, w.Len())
	}
	w.Truncate(0)
	if fill(9); !w.Exceeded() {
		t.Error("18 MiB of 16 are not too long")
	}
	w.Truncate(0)
	w.SetLimit(mib)
	if w.Bulk(make([]byte, 2*mib)); !w.Exceeded() || w.Short() != 0 {
		t.Errorf("too long a reply is short of %d", w.Short())
	}
}

// TestCloseGivesReserved: a writer that is closed after a panic gives back also what was only reserved.
func TestCloseGivesReserved(t *testing.T) {
	b := &resp.Budget{}
	b.SetLimit(16 << 20)
	var w resp.Writer
	w.SetBudget(b)
	w.SetLimit(16 << 20)
	if !w.Reserve(8<<20) || b.Taken() == 0 {
		t.Fatalf("taken: %d", b.Taken())
	}
	if w.Close(); b.Taken() != 0 {
		t.Errorf("taken: %d", b.Taken())
	}
}
