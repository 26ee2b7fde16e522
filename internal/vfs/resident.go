package vfs

import "sync/atomic"

// ResidentUnit is the number of bytes that a bit of ResidentPages stands for: no page is smaller.
const ResidentUnit = 4096

// ResidentPages is which units of a MiB are in memory.
type ResidentPages [(1 << 20) / ResidentUnit / 64]atomic.Uint64

// Has reports whether the units from first to last are in memory.
func (p *ResidentPages) Has(first, last int) bool {
	for i := first; i <= last; i++ {
		if p[i/64].Load()>>(i%64)&1 == 0 {
			return false
		}
	}
	return true
}

// Add notes that the units from first to last are in memory.
func (p *ResidentPages) Add(first, last int) {
	for i := first; i <= last; i++ {
		p[i/64].Or(1 << (i % 64))
	}
}
