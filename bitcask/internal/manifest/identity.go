package manifest

import (
	crand "crypto/rand"
	"encoding/binary"
	"io"

	"github.com/stavedb/stave/keydir"
)

// NewIdentity makes the id and the hash seed of a new store.
func NewIdentity() (store [16]byte, seed keydir.Seed, err error) {
	var random [32]byte
	_, err = io.ReadFull(crand.Reader, random[:])
	copy(store[:], random[:])
	return store, keydir.Seed{binary.LittleEndian.Uint64(random[16:]), binary.LittleEndian.Uint64(random[24:])}, err
}
