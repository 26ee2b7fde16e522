package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/server"
)

// TestGroupFullDisk: a primary whose disk is full goes on without a member that ends, and a member whose disk is full becomes primary: what
// deletes is acknowledged, what needs space is refused, and nothing is lost. With space again all is as before.
func TestGroupFullDisk(t *testing.T) {
	disks := map[string]*vfs.Mem{}
	records, members := startGroupOf(t, 3, server.Options{}, func(m *groupMember) {
		m.silence = 500 * time.Millisecond
		disks[m.id] = m.fs.(*vfs.Mem)
	})
	const page = 4 << 10
	eventually(t, "all are in sync", func() bool { return len(records.inSync()) == 3 })
	primary := func() *groupMember { return records.primaryOf(members) }
	does := func(what, words, want string) {
		t.Helper()
		got := ""
		eventually(t, what, func() bool { got = primary().do(words); return got == want || !strings.HasPrefix(got, "-") })
		if got != want {
			t.Fatalf("%s: %q", what, got)
		}
	}
	deletes := func(key string) { // once more after an outcome that is not known, and then it may be gone
		t.Helper()
		eventually(t, "a delete is acknowledged", func() bool { return strings.HasPrefix(primary().do("DEL "+key), ":") })
		does("what was deleted is gone", "EXISTS "+key, ":0\r\n")
	}
	value := strings.Repeat("v", 10_000)
	for i := range 300 {
		does("a write is acknowledged", fmt.Sprintf("SET k%d %s", i, value), "+OK\r\n")
	}
	eventually(t, "all have a reserve", func() bool {
		return !slices.ContainsFunc(members, func(m *groupMember) bool {
			return strings.Contains(m.do("INFO persistence"), "store_reserve_bytes:0\r\n")
		})
	})
	fill := func(m *groupMember) { disks[m.id].SetLimit(disks[m.id].Used(page)+2*page, page) }
	first := primary()
	fill(first)
	eventually(t, "the disk is full", func() bool { return strings.Contains(first.do("SET k new"+value), "the disk is full") })
	others := slices.DeleteFunc(slices.Clone(members), func(m *groupMember) bool { return m == first })
	others[0].end()
	eventually(t, "the primary goes on without a member that has ended", func() bool { return len(records.inSync()) == 2 })
	deletes("k0")
	others[0].again()
	eventually(t, "it is in sync again", func() bool { return len(records.inSync()) == 3 })
	for _, m := range others {
		fill(m)
	}
	first.end()
	eventually(t, "a member whose disk is full takes over", func() bool { return primary() != first })
	deletes("k1")
	eventually(t, "it takes no more", func() bool { return strings.Contains(primary().do("SET k new"+value), "the disk is full") })
	for i := 2; i < 300; i += 50 {
		does("a read is answered", fmt.Sprintf("STRLEN k%d", i), ":10000\r\n")
	}
	does("what was deleted is gone", "EXISTS k0 k1", ":0\r\n")
	for _, disk := range disks {
		disk.SetLimit(1<<30, page)
	}
	first.again()
	does("a write is acknowledged", "SET k new", "+OK\r\n")
	eventually(t, "all are in sync", func() bool { return len(records.inSync()) == 3 })
}
