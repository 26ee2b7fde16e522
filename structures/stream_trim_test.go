package structures_test

import (
	"testing"

	"github.com/stavedb/stave/structures"
)

// TestTrimLeavesWhatNobodyHas: a trim that keeps what groups have not been delivered passes none of that, however much there is,
// and removes what all have acknowledged, also from between pending entries.
func TestTrimLeavesWhatNobodyHas(t *testing.T) {
	m := newMemory()
	s := structures.Stream{Txn: m, Key: "s"}
	g := structures.StreamGroup{Txn: m, Key: "s", Name: "g", Now: 5}
	const delivered, all = 700, 20_000
	for ms := range uint64(all) {
		id := structures.StreamNewID{Given: true, ID: structures.StreamID{Ms: ms + 1}}
		_, _, err := s.Add([][]byte{[]byte("f"), nil}, structures.StreamAddOptions{ID: id})
		must(t, err)
	}
	must(t, g.Create(structures.StreamGroupStart{}))
	must(t, g.Read(structures.StreamGroupRead{Consumer: "c", Count: delivered}, func(structures.StreamID, [][]byte) bool { return true }))
	trim := func() (n int) {
		n, err := s.Trim(structures.StreamTrim{MaxLen: 10, References: structures.NeedAcknowledged})
		must(t, err)
		return n
	}
	if n := trim(); n != 0 {
		t.Errorf("%d entries are removed although all are needed", n)
	}
	var done []structures.StreamID
	for ms := uint64(1); ms <= delivered; ms++ {
		if ms%2 == 0 {
			done = append(done, structures.StreamID{Ms: ms})
		}
	}
	_, err := g.Ack(done)
	must(t, err)
	if n := trim(); n != len(done) {
		t.Errorf("%d entries are removed, want the %d that were acknowledged", n, len(done))
	}
	if n := testing.AllocsPerRun(5, func() { trim() }); n > 2*delivered {
		t.Errorf("a trim takes %v allocations with %d entries pending", n, delivered/2)
	}
}
