package resp_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/internal/test/storetest"
)

// TestWriterReusesBuffers: writers hand on the buffers of long replies, and what is written is whole.
func TestWriterReusesBuffers(t *testing.T) {
	value := bytes.Repeat([]byte("x"), 2000)
	var want []byte
	for range 100 {
		want = append(append(append(want, "$2000\r\n"...), value...), '\r', '\n')
	}
	var writers [2]resp.Writer
	round := func() {
		for i := range writers {
			w := &writers[i]
			for range 100 {
				w.Bulk(value)
			}
			if !bytes.Equal(w.Bytes(), want) {
				t.Fatal("a reply is not what was written")
			}
		}
		for i := range writers {
			w := &writers[i]
			w.Discard(1000)
			if !bytes.Equal(w.Bytes(), want[1000:]) {
				t.Fatal("a reply is not what was written")
			}
			w.Discard(w.Len())
			if w.Held() > 16<<10 {
				t.Fatalf("a drained writer holds %d bytes", w.Held())
			}
		}
	}
	round()
	least := testing.AllocsPerRun(100, round)
	for range 10 { // a garbage collection takes the buffers
		least = min(least, testing.AllocsPerRun(10, round))
	}
	if least > 4 && !storetest.UnderRace { // whose pools lose every fourth buffer
		t.Errorf("%v allocations", least)
	}
}

// TestWriterExpects: values that are as long as the ones before are read to where they are sent from, and cost no new
// buffers, however many are pipelined; a short one after long ones holds no more of the budget than there is.
func TestWriterExpects(t *testing.T) {
	for _, length := range []int{4 << 10, 60_000, 125 << 10, 300_000, 1 << 20} {
		value := bytes.Repeat([]byte("v"), length)
		want := fmt.Appendf(nil, "$%d\r\n%s\r\n", length, value)
		budget := &resp.Budget{Allowance: 5 << 18}
		budget.SetLimit(64 << 20)
		var w resp.Writer
		w.SetBudget(budget)
		moved := 0
		round := func() {
			moved = 0
			for range 16 {
				w.SetLimit(1 << 30)
				b := w.BeginBulk()
				if cap(b)-len(b) < length+2 {
					moved++
				}
				w.EndBulk(append(b, value...))
			}
			for rest := 16; rest > 0; {
				piece := w.Bytes()
				for ; len(piece) > 0; rest-- {
					if !bytes.HasPrefix(piece, want) {
						t.Fatalf("%d bytes: a reply is not what was written", length)
					}
					piece = piece[len(want):]
				}
				w.Discard(len(w.Bytes()))
			}
			if w.Held() > 32<<10 || budget.Taken() != 0 {
				t.Fatalf("%d bytes: the drained writer holds %d bytes, and %d of the budget", length, w.Held(), budget.Taken())
			}
		}
		round()
		round()
		if moved > 0 {
			t.Errorf("%d bytes: %d values of 16 have no room", length, moved)
		}
		least := testing.AllocsPerRun(20, round)
		for range 10 { // a garbage collection takes the buffers
			least = min(least, testing.AllocsPerRun(5, round))
		}
		if least > 25 && !storetest.UnderRace { // the pools' pointers, the list of parts
			t.Errorf("%d bytes: %v allocations", length, least)
		}
	}
}

// TestWriterExpectsWhatThereIs: what may not come is not waited for.
func TestWriterExpectsWhatThereIs(t *testing.T) {
	budget := &resp.Budget{Allowance: 1 << 10}
	budget.SetLimit(1 << 20)
	var writers [2]resp.Writer
	for i := range writers {
		w := &writers[i]
		w.SetBudget(budget)
		w.SetLimit(1 << 30)
		w.EndBulk(append(w.BeginBulk(), make([]byte, 900<<10)...))
		if i == 0 {
			w.Discard(w.Len())
		}
	}
	w := &writers[0]
	w.SetLimit(1 << 30)
	w.EndBulk(append(w.BeginBulk(), "short"...))
	if w.Dropped() || string(w.Bytes()) != "$5\r\nshort\r\n" {
		t.Errorf("a short reply after a long one has no room: %q", w.Bytes())
	}
}
