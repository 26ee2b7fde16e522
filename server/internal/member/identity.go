package member

import (
	"crypto/rand"
	"encoding/binary"
	"os"
	"strings"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/group"
	"github.com/stavedb/stave/internal/serverside"
)

// What the store notes of itself as a member, besides its own id: a backup of it is another member, or the same one with another
// incarnation.
//
//	version u8 | incarnation u64 | always u8 | id of the machine's boot
//
// always is 1 if each commit was on disk before it was acknowledged, since the record was written.

const identityVersion = 1

const identitySize = 1 + 8 + 1

// identify returns the member that a store is from here on: with another incarnation than before, if its log may be shorter than what
// it has acknowledged. So it is after another boot of the machine, unless it has synced each commit.
func identify(store *db.Store, id, boot string) (group.Member, error) {
	always := byte(0)
	if store.SyncMode() == db.SyncAlways {
		always = 1
	}
	kept := serverside.DB.Member(store)
	m := group.Member{ID: id}
	if len(kept) >= identitySize && kept[0] == identityVersion {
		m.Incarnation = binary.LittleEndian.Uint64(kept[1:])
		sameBoot := boot != "" && string(kept[identitySize:]) == boot
		switch {
		case sameBoot && kept[9] == always:
			return m, nil
		case !sameBoot && kept[9] == 0:
			m.Incarnation = 0
		}
	}
	for m.Incarnation == 0 {
		var b [8]byte
		_, _ = rand.Read(b[:])                                 // never fails: crypto/rand ends the process instead
		m.Incarnation = binary.LittleEndian.Uint64(b[:]) >> 11 // so that it is exact as a number of JSON
	}
	value := append(binary.LittleEndian.AppendUint64([]byte{identityVersion}, m.Incarnation), always)
	return m, serverside.DB.SetMember(store, append(value, boot...))
}

// bootID is that of the time since the machine has booted; "" where there is none.
func bootID() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
