package mergeselect

// Pacer counts what one goroutine of a merge reads and writes.
type Pacer struct {
	// CheckIn reports so many bytes read and written, and bytes of the inputs dealt with, throttles, and notices why
	// the merge is to end.
	CheckIn func(spent int, passed int64) error

	spent  int   // bytes since the last look around
	Passed int64 // bytes of the inputs dealt with since then
}

// Spend counts bytes read or written, and checks in at intervals.
func (p *Pacer) Spend(bytes int) error {
	const lookAfter = 64 << 10
	if p.spent += bytes; p.spent < lookAfter {
		return nil
	}
	return p.Report()
}

// Report checks in.
func (p *Pacer) Report() error {
	spent, passed := p.spent, p.Passed
	p.spent, p.Passed = 0, 0
	return p.CheckIn(spent, passed)
}
