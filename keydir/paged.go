package keydir

const (
	pagedShift = 10
	pagedSize  = 1 << pagedShift
)

// paged is an array in pages of 1024. It grows by a page at a time: an array of millions in
// one piece would be copied, for milliseconds, by whichever insert it was that filled it.
type paged[T any] struct {
	pages [][]T
	n     int
}

func (p *paged[T]) at(i int) *T { return &p.pages[i>>pagedShift][i&(pagedSize-1)] }

// push appends v and returns its index.
func (p *paged[T]) push(v T) int {
	last := p.n >> pagedShift
	if last == len(p.pages) {
		var page []T // the first grows as it fills, for most arrays are short
		if last > 0 {
			page = make([]T, 0, pagedSize)
		}
		p.pages = append(p.pages, page)
	}
	p.pages[last] = append(p.pages[last], v)
	p.n++
	return p.n - 1
}
