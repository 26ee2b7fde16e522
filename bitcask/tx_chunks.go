package bitcask

import (
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/keydir"
)

// A string that is too long for one record is a collection of chunks, so that to
// change or to read a part of it is to write or to read the chunks that the part
// touches. All chunks of a string but the last stand for the same number of
// bytes, which their index says; a chunk of another
// size belongs to another string, which it replaces. One that is missing is zeros, and so is what one
// lacks at its end. The last one is there and ends where the string ends.

// PutChunks makes key, which holds nothing, a string in chunks of size bytes. If
// value is empty, PutIndex follows.
func (t *Tx) PutChunks(ns int, key string, value []byte, size int) (keydir.Collection, error) {
	sp, h, err := t.spaceFor(ns, key)
	if err != nil {
		return keydir.Collection{}, err
	}
	coll, err := t.Collection(ns, key, keydir.Chunks)
	if err != nil {
		return coll, err
	}
	// No chunk needs its own rollback: the collection is new.
	apart := t.borrow && len(value) >= bigValue
	for i := 0; i*size < len(value); i++ {
		index := keydir.ChunkIndex(size, i)
		chunk := value[i*size : min((i+1)*size, len(value))]
		loc, err := t.addRecord(KindElement, keydir.Chunks, sp, h, key, format.IndexName(index), chunk, apart)
		if err != nil {
			return keydir.Collection{}, err
		}
		coll.PutAt(index, loc)
	}
	return coll, nil
}

// rewritesLastChunk reports whether the transaction wrote the last chunk of a string,
// which says how long it is.
func (t *Tx) rewritesLastChunk(coll keydir.Collection) bool {
	if coll.Type() != keydir.Chunks {
		return false
	}
	_, tail := coll.Bounds()
	loc, _ := coll.LocAt(tail)
	return loc.Pending()
}

// chunkedLen is the length of a string in chunks.
func (t *Tx) chunkedLen(sp *namespace.Space, key string, coll keydir.Collection) (int64, error) {
	_, tail := coll.Bounds()
	loc, _ := coll.LocAt(tail)
	q := segment.Query{Namespace: sp.ID, Kind: KindElement, Type: keydir.Chunks, Key: key, Elem: format.IndexName(tail)}
	_, n, match, err := t.get(nil, loc, &q, true)
	if err == nil && !match {
		err = t.notNamed(loc)
	}
	size, number, _ := keydir.ChunkAt(tail)
	return int64(size)*int64(number) + int64(n), err
}
