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

// knowsFieldDeadlines reports whether a server does, as Redis since 7.4 and Valkey since 9.
func knowsFieldDeadlines(c *client) bool {
	c.t.Helper()
	return strings.Contains(c.must("COMMAND", "INFO", "hpexpiretime"), "hpexpiretime")
}

// sendsIdleConsumers reports whether a server, as a master now or before, sends consumers that have nothing pending. Redis since 7.2
// and Valkey make them of commands that deliver nothing, and do not send these.
func sendsIdleConsumers(c *client) bool {
	c.t.Helper()
	return c.info("server", "stave_version") != "" || strings.HasPrefix(c.info("server", "redis_version"), "7.0.")
}

// contents is what of a server is looked at, besides what there is always.
type contents struct{ fieldDeadlines, idleConsumers bool }

// of is what a server holds, by database and key.
func (what contents) of(c *client) map[string]string {
	c.t.Helper()
	libraries := sorted(c.pipeline([]string{"FUNCTION", "LIST", "WITHCODE"})[0].Items, 1)
	all := map[string]string{"functions": strings.Join(libraries, " ")}
	for n := range 16 {
		c.must("SELECT", strconv.Itoa(n))
		keys := c.pipeline([]string{"KEYS", "*"})[0].Items
		for _, key := range keys {
			name := string(key.Text)
			all[fmt.Sprintf("%d %q", n, name)] = what.value(c, name)
		}
	}
	c.must("SELECT", "0")
	return all
}

// value is what a key holds, with its type and deadline.
func (what contents) value(c *client, key string) string {
	c.t.Helper()
	typ := c.must("TYPE", key)
	query := map[string][]string{
		"string": {"GET", key}, "list": {"LRANGE", key, "0", "-1"}, "set": {"SMEMBERS", key}, "hash": {"HGETALL", key},
		"zset": {"ZRANGE", key, "0", "-1", "WITHSCORES"}, "stream": {"XINFO", "STREAM", key, "FULL", "COUNT", "0"},
	}[typ]
	if query == nil {
		return typ
	}
	reply := c.pipeline(query)[0]
	var parts []string
	switch typ {
	case "set":
		parts = sorted(reply.Items, 1)
	case "hash":
		parts = sorted(reply.Items, 2)
		if what.fieldDeadlines {
			parts = append(parts, fieldDeadlines(c, key, reply.Items))
		}
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
		parts = []string{what.streamText(&reply)}
	default:
		parts = []string{text(reply)}
	}
	return typ + " " + c.must("PEXPIRETIME", key) + " " + strings.Join(parts, " ")
}

// fieldDeadlines are those of a hash, in the order of its fields' names.
func fieldDeadlines(c *client, key string, pairs []resp.Reply) string {
	c.t.Helper()
	var fields []string
	for i := 0; i < len(pairs); i += 2 {
		fields = append(fields, string(pairs[i].Text))
	}
	if len(fields) == 0 {
		return ""
	}
	slices.Sort(fields)
	return c.must(append([]string{"HPEXPIRETIME", key, "FIELDS", strconv.Itoa(len(fields))}, fields...)...)
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
func (what contents) streamText(r *resp.Reply) string {
	skip := []string{"radix-tree-keys", "radix-tree-nodes", "seen-time", "active-time", "lag", "entries-read"}
	var b strings.Builder
	b.WriteByte('[')
	for i := 0; i < len(r.Items); i++ {
		e := &r.Items[i]
		if slices.Contains(skip, string(e.Text)) || !what.idleConsumers && isIdleConsumer(e) {
			if len(e.Items) == 0 {
				i++
			}
			continue
		}
		if len(e.Items) > 0 {
			b.WriteString(what.streamText(e))
		} else {
			b.WriteString(text(*e))
		}
		b.WriteByte(' ')
	}
	b.WriteByte(']')
	return b.String()
}

// isIdleConsumer reports whether a part of XINFO STREAM FULL is a consumer that has nothing pending.
func isIdleConsumer(e *resp.Reply) bool {
	words := map[string]string{}
	for i := 0; i+1 < len(e.Items); i += 2 {
		words[string(e.Items[i].Text)] = text(e.Items[i+1])
	}
	_, isConsumer := words["seen-time"]
	return isConsumer && words["pel-count"] == "0"
}

// wantSame compares what two servers hold.
func wantSame(t testing.TB, master, replica *client) {
	t.Helper()
	what := contents{fieldDeadlines: knowsFieldDeadlines(master) && knowsFieldDeadlines(replica), idleConsumers: sendsIdleConsumers(master) && sendsIdleConsumers(replica)}
	want, have := what.of(master), what.of(replica)
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
