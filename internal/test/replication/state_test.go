package replication_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stavedb/stave/internal/resp"
)

// state is everything that a server holds, by database and key.
func state(c *client) map[string]string {
	c.t.Helper()
	libraries := sorted(c.pipeline([]string{"FUNCTION", "LIST", "WITHCODE"})[0].Items, 1)
	all := map[string]string{"functions": strings.Join(libraries, " ")}
	for n := range 16 {
		c.must("SELECT", strconv.Itoa(n))
		keys := c.pipeline([]string{"KEYS", "*"})[0].Items
		for _, key := range keys {
			name := string(key.Text)
			all[fmt.Sprintf("%d %q", n, name)] = value(c, name)
		}
	}
	c.must("SELECT", "0")
	return all
}

// value is what a key holds, with its type and deadline.
func value(c *client, key string) string {
	c.t.Helper()
	typ := c.must("TYPE", key)
	what := map[string][]string{
		"string": {"GET", key}, "list": {"LRANGE", key, "0", "-1"}, "set": {"SMEMBERS", key}, "hash": {"HGETALL", key},
		"zset": {"ZRANGE", key, "0", "-1", "WITHSCORES"}, "stream": {"XINFO", "STREAM", key, "FULL", "COUNT", "0"},
	}[typ]
	if what == nil {
		return typ
	}
	reply := c.pipeline(what)[0]
	var parts []string
	switch typ {
	case "set":
		parts = sorted(reply.Items, 1)
	case "hash":
		parts = sorted(reply.Items, 2)
	case "zset": // versions of Redis print scores in different ways
		for i, e := range reply.Items {
			if i%2 == 1 {
				score, err := strconv.ParseFloat(string(e.Text), 64)
				if err != nil {
					c.t.Fatal(err)
				}
				parts = append(parts, strconv.FormatFloat(score, 'g', -1, 64))
			} else {
				parts = append(parts, text(e))
			}
		}
	case "stream":
		parts = []string{streamText(&reply)}
	default:
		parts = []string{text(reply)}
	}
	return typ + " " + c.must("PEXPIRETIME", key) + " " + strings.Join(parts, " ")
}

func sorted(elements []resp.Reply, width int) (list []string) {
	for chunk := range slices.Chunk(elements, width) {
		one := ""
		for _, e := range chunk {
			one += " " + text(e)
		}
		list = append(list, one)
	}
	slices.Sort(list)
	return list
}

// streamText is XINFO STREAM FULL without what the two count in ways of their own: nodes of their indexes, and the times at
// which consumers were seen. How many entries a group has read is known to the master alone: what it sends of XREADGROUP is
// XCLAIM with LASTID, after which a replica of Redis's does not know that either.
func streamText(r *resp.Reply) string {
	skip := []string{"radix-tree-keys", "radix-tree-nodes", "seen-time", "active-time", "lag", "entries-read"}
	var b strings.Builder
	b.WriteByte('[')
	for i := 0; i < len(r.Items); i++ {
		e := &r.Items[i]
		if slices.Contains(skip, string(e.Text)) {
			i++
			continue
		}
		if len(e.Items) > 0 {
			b.WriteString(streamText(e))
		} else {
			b.WriteString(text(*e))
		}
		b.WriteByte(' ')
	}
	b.WriteByte(']')
	return b.String()
}

// wantSame compares what two servers hold.
func wantSame(t testing.TB, master, replica *client) {
	t.Helper()
	want, have := state(master), state(replica)
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if have[key] != want[key] {
			t.Errorf("%s:\nhas  %.600s\nwant %.600s", key, have[key], want[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(have)) {
		if _, ok := want[key]; !ok {
			t.Errorf("%s is too much: %.300s", key, have[key])
		}
	}
}

// wantSyncs checks how often the replica was given everything anew, and that it could execute all that it was sent.
func wantSyncs(t *testing.T, master, replica *client, full int) {
	t.Helper()
	if n := master.info("stats", "sync_full"); n != strconv.Itoa(full) {
		t.Errorf("%s full synchronizations, want %d", n, full)
	}
	if errors := replica.must("INFO", "errorstats"); strings.Contains(errors, "errorstat_") {
		t.Errorf("the replica refused commands:\n%s", errors)
	}
}
