package command

import (
	"strings"
	"testing"
)

// TestCostOf: the arguments of a request may change what its row says.
func TestCostOf(t *testing.T) {
	table := NewTable(Data())
	for _, tt := range []struct {
		request string
		want    Cost
	}{
		{"GET k", Cost{Work: Constant, Repeats: true}},
		{"LCS a b", Cost{Work: Unbounded, Repeats: true}},
		{"DEL a b c", Cost{Work: BySize, Repeats: true}},
		{"LRANGE k 0 -1", Cost{Work: ByReply, Repeats: true}},
		{"LREM k 0 x", Cost{Work: InSteps, Repeats: true}},
		{"SORT k", Cost{Work: Unbounded, Repeats: true}},
		{"KEYS *", Cost{Work: Unbounded, Repeats: true}},
		{"FLUSHALL", Cost{Work: Unbounded}},
		{"RENAMENX a b", Cost{Work: Unbounded, Repeats: true}},
		{"SPOP k", Cost{Work: Constant, Repeats: true}},
		{"SPOP k 100", Cost{Work: Constant, Repeats: true}},
		{"SPOP k 101", Cost{Work: Unbounded, Repeats: true}},
		{"PFCOUNT k", Cost{Work: Constant, Repeats: true}},
		{"PFCOUNT k l", Cost{Work: Unbounded, Repeats: true}},
		{"BLPOP k 0", Cost{Work: BySize, Waits: true, Repeats: true}},
		{"BLMPOP 0 1 k LEFT", Cost{Work: Unbounded, Waits: true, Repeats: true}},
		{"XREAD STREAMS k 0", Cost{Work: ByReply, Waits: true, Repeats: true}},
		{"XREAD COUNT 5 STREAMS k 0", Cost{Work: Constant, Repeats: true}},
		{"XREAD COUNT 5 BLOCK 0 STREAMS k 0", Cost{Work: Constant, Waits: true, Repeats: true}},
		{"XREAD COUNT 60 STREAMS a b 0 0", Cost{Work: ByReply, Waits: true, Repeats: true}},
		{"XADD k * acke d", Cost{Work: Constant, Repeats: true}},
		{"XADD k MAXLEN ~ 9 LIMIT 5 ACKED * a b", Cost{Work: Unbounded, Repeats: true}},
		{"XDELEX k KEEPREF IDS 1 1-1", Cost{Work: Constant, Repeats: true}},
		{"XDELEX k delref IDS 1 1-1", Cost{Work: Unbounded, Repeats: true}},
		{"XACKDEL k g ACKED IDS 1 1-1", Cost{Work: Unbounded, Repeats: true}},
		{"XREADGROUP GROUP g c STREAMS k >", Cost{Work: Unbounded, Waits: true, Repeats: true}},
	} {
		var args [][]byte
		for _, word := range strings.Fields(tt.request) {
			args = append(args, []byte(word))
		}
		cmd, err := table.Resolve(args)
		if err != nil {
			t.Fatal(err)
		}
		if got := cmd.CostOf(args); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.request, got, tt.want)
		}
	}
}
