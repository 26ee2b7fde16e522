package structures

import "encoding/binary"

// elementList holds the elements of a result until they are written: the name of each, and a number. It grows without
// moving what it holds, and has no pointer for each element, so that neither a copy nor the garbage collector stops
// others when there are millions.
type elementList struct {
	chunks [][]byte // of each element the number and the length of the name, as uvarints, and the name
	n      int
}

// elementChunk is the size of a chunk but for the first few, which are smaller, and those with a long name.
const elementChunk = 64 << 10

// add adds an element, whose name it copies.
func (l *elementList) add(name []byte, number uint64) {
	last := len(l.chunks) - 1
	need := 2*binary.MaxVarintLen64 + len(name)
	if last < 0 || cap(l.chunks[last])-len(l.chunks[last]) < need {
		size := elementChunk >> max(0, 6-len(l.chunks))
		l.chunks = append(l.chunks, make([]byte, 0, max(size, need)))
		last++
	}
	chunk := binary.AppendUvarint(l.chunks[last], number)
	chunk = binary.AppendUvarint(chunk, uint64(len(name)))
	l.chunks[last] = append(chunk, name...)
	l.n++
}

// drain calls put with each element, in their order, until that fails. It lets go of the memory on the way; a name stays
// as it is while it is held.
func (l *elementList) drain(put func(name string, number uint64) error) error {
	for i, chunk := range l.chunks {
		l.chunks[i] = nil
		for len(chunk) > 0 {
			number, n := binary.Uvarint(chunk)
			length, m := binary.Uvarint(chunk[n:])
			name := chunk[n+m:][:length]
			if err := put(text(name), number); err != nil {
				return err
			}
			chunk = chunk[n+m+int(length):]
		}
	}
	return nil
}
