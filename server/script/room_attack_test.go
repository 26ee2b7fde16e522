package script_test

import (
	"errors"
	"runtime/debug"
	"testing"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server/script"
)

// TestRoomIsNotForGarbageOfOthers: a script that only computes is not stopped because there is garbage of others on the
// heap and no room.
func TestRoomIsNotForGarbageOfOthers(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // the garbage stays
	program, err := script.Compile("local n = 0 for i = 1, 100000 do n = n + i end return 1", "f")
	if err != nil {
		t.Fatal(err)
	}
	e := script.NewEngine("7.4.0")
	for round := range 20 {
		garbage := make([][]byte, 64)
		for i := range garbage {
			garbage[i] = make([]byte, 1<<20)
		}
		most := 0
		host := script.Host{
			Hold:   func(n int) bool { most = max(most, n); return n <= 1<<20 },
			NoRoom: func(int) error { return errors.New("no room") },
			Taken:  func() (int64, int64) { return 0, 0 },
		}
		var out resp.Writer
		if err := e.Run(program, &script.Run{Host: host, Name: "f"}, &out); err != nil {
			t.Fatalf("round %d: %v, %d KiB claimed", round, err, most>>10) // also if what is lent is not given back
		}
	}
}
