package vfs

import "slices"

// memBytes is the contents of a file in memory: pages, of which all but the last are of memPage bytes. A file that
// grows is never copied but for its last page, and truncated pages are released.
type memBytes struct {
	pages [][]byte
	size  int64
}

// memPage is the length of a page in bytes.
const memPage = 64 << 10

// readAt copies what there is from off on to p.
func (m *memBytes) readAt(p []byte, off int64) (n int) {
	for n < len(p) && off < m.size {
		c := copy(p[n:], m.pages[off/memPage][off%memPage:])
		n, off = n+c, off+int64(c)
	}
	return n
}

// writeAt copies p to off, with zeros before it if there is a gap.
func (m *memBytes) writeAt(p []byte, off int64) {
	m.grow(off + int64(len(p)))
	for len(p) > 0 {
		c := copy(m.pages[off/memPage][off%memPage:], p)
		p, off = p[c:], off+int64(c)
	}
}

// grow adds zeros until there are size bytes.
func (m *memBytes) grow(size int64) {
	for m.size < size {
		i := m.size / memPage
		length := min(size-i*memPage, memPage) // of page i
		switch {
		case i == int64(len(m.pages)) && (i > 0 || length == memPage):
			m.pages = append(m.pages, make([]byte, length, memPage))
		case i == int64(len(m.pages)):
			m.pages = append(m.pages, make([]byte, length))
		default:
			page := m.pages[i]
			m.pages[i] = append(page, make([]byte, length-int64(len(page)))...)
		}
		m.size = i*memPage + length
	}
}

// truncate makes it size bytes, with zeros for those that it lacks.
func (m *memBytes) truncate(size int64) {
	m.grow(size)
	n := (size + memPage - 1) / memPage
	clear(m.pages[n:])
	m.pages, m.size = m.pages[:n], size
	if used := size % memPage; used > 0 {
		m.pages[n-1] = m.pages[n-1][:used]
	}
}

func (m *memBytes) clone() memBytes {
	c := memBytes{pages: slices.Clone(m.pages), size: m.size}
	for i, page := range c.pages {
		c.pages[i] = slices.Clone(page)
	}
	return c
}
