package cluster_test

import (
	"strings"
	"testing"

	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/cluster"
)

// The numbers are those of redis-server's CLUSTER KEYSLOT; 12739 is the check value of CRC-16/XMODEM.
func TestSlotOf(t *testing.T) {
	for key, want := range map[string]int{
		"": 0, "123456789": 12739, "foo": 12182, "{foo}": 12182, "a{foo}b{bar}": 12182, "foo{}{bar}": 8363,
	} {
		if got := cluster.SlotOf(key); got != want {
			t.Errorf("slot of %q: %d, want %d", key, got, want)
		}
	}
	if cluster.SlotOf("{}foo") == cluster.SlotOf("foo") {
		t.Error("empty braces are taken for a hash tag")
	}
}

func TestRefuses(t *testing.T) {
	table := command.NewTable(command.Data())
	for line, want := range map[string]error{
		"MGET {a}1 {a}2": nil, "MGET a b": cluster.ErrCrossSlot, "GET a": nil, "SORT a GET b": command.Error("ERR GET option of SORT denied in Cluster mode."),
		"MOVE a 1": command.Error("ERR MOVE is not allowed in cluster mode"), "COPY {a}1 {a}2 DB 0": nil,
		"COPY {a}1 {a}2 DB 1": command.Error("ERR Copying to another database is not allowed in cluster mode"),
	} {
		var args [][]byte
		for _, word := range strings.Fields(line) {
			args = append(args, []byte(word))
		}
		cmd, err := table.Resolve(args)
		if err != nil {
			t.Fatal(line, err)
		}
		if got := cluster.Refuses(cmd, args); got != want {
			t.Errorf("%s: %v, want %v", line, got, want)
		}
	}
}

// TestSlotOfRequest: it is that of the first key of any command, or else of its first shard channel.
func TestSlotOfRequest(t *testing.T) {
	r := chance.Rand(t)
	words := []string{"a", "b", "1", "2", "streams", "keys", "store", "count", "{a}x", ""}
	for _, cmd := range command.NewTable(command.Data()).Commands {
		for range 50 {
			args := [][]byte{[]byte(cmd.Name)}
			for n := max(cmd.Arity, -cmd.Arity) + r.IntN(4); len(args) < n; {
				args = append(args, []byte(words[r.IntN(len(words))]))
			}
			keys := cmd.AppendKeys(nil, args)
			slot, ok := cluster.SlotOfRequest(cmd, args)
			if ok != (len(keys) > 0) || ok && slot != cluster.SlotOf(keys[0]) {
				t.Fatalf("%q: slot %d, %t, of keys %q", args, slot, ok, keys)
			}
		}
	}
}
