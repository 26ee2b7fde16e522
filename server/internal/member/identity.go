package member

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"os"
	"strings"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/group"
	"github.com/stavedb/stave/internal/serverside"
)

// identity is what the store notes of itself as a member, besides its own id: a backup of it is another member, or the same one with another
// incarnation.
//
//	version u8 | incarnation u64 | always u8 | length u8, and id of the machine's boot | what was noted of the record, JSON
//
// always is 1 if each commit was on disk before it was acknowledged, since the incarnation or that was written.
type identity struct {
	incarnation uint64
	always      bool
	boot        string
	noted       group.Noted
}

const (
	identityVersion = 1
	identitySize    = 1 + 8 + 1 + 1
)

func (i *identity) encode() []byte {
	b := binary.LittleEndian.AppendUint64([]byte{identityVersion}, i.incarnation)
	always := byte(0)
	if i.always {
		always = 1
	}
	b = append(b, always, byte(len(i.boot)))
	return append(append(b, i.boot...), i.noted.String()...)
}

func (i *identity) write(store *db.Store) error { return serverside.DB.SetMember(store, i.encode()) }

func decodeIdentity(b []byte) (i identity, ok bool) {
	if len(b) < identitySize || b[0] != identityVersion || len(b) < identitySize+int(b[10]) {
		return i, false
	}
	i.incarnation, i.always = binary.LittleEndian.Uint64(b[1:]), b[9] == 1
	b = b[identitySize-1:]
	i.boot = string(b[1 : 1+b[0]])
	noted, err := group.ParseNoted(b[1+b[0]:])
	i.noted = noted
	return i, err == nil
}

// identify returns which member of a group a store is from here on: with another incarnation than before, if its log may be shorter than
// what it has acknowledged. So it is after another boot of the machine, unless it has synced each commit. What it has noted of
// another group counts no more.
func identify(store *db.Store, groupName, boot string) (identity, error) {
	kept := serverside.DB.Member(store)
	i, ok := decodeIdentity(kept)
	sameBoot := boot != "" && i.boot == boot
	if !ok || !sameBoot && !i.always {
		i.incarnation = 0
	}
	i.boot, i.always = boot, store.SyncMode() == db.SyncAlways
	if i.noted.Group != groupName {
		i.noted = group.Noted{Group: groupName}
	}
	for i.incarnation == 0 {
		var b [8]byte
		_, _ = rand.Read(b[:])                                 // never fails: crypto/rand ends the process instead
		i.incarnation = binary.LittleEndian.Uint64(b[:]) >> 11 // so that it is exact as a number of JSON
	}
	if bytes.Equal(kept, i.encode()) {
		return i, nil
	}
	return i, i.write(store)
}

// bootID is that of the time since the machine has booted; "" where there is none.
func bootID() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
