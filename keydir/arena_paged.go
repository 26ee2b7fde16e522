package keydir

const (
	pagedShift = 10
	pagedSize  = 1 << pagedShift
)

// paged is an array in pages of 1024. It grows a page at a time: the insert that fills an
// array of millions in one piece would copy it, for milliseconds.
type paged[T any] struct {
	pages [][]T
	n     int
}

func (p *paged[T]) at(i int) *T { return &p.pages[i>>pagedShift][i&(pagedSize-1)] }

// push appends v and returns its index.
func (p *paged[T]) push(v T) int {
	last := p.n >> pagedShift
	if last == len(p.pages) {
		var page []T // the first page grows as it fills, because most arrays are short
		if last > 0 {
			page = make([]T, 0, pagedSize)
		}
		p.pages = append(p.pages, page)
	}
	p.pages[last] = append(p.pages[last], v)
	p.n++
	return p.n - 1
}
