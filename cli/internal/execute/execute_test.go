package execute_test

import (
	"strings"
	"testing"

	"github.com/stavedb/stave/cli/internal/execute"
	"github.com/stavedb/stave/db/dbtest"
	"github.com/stavedb/stave/server"
)

// An error reply is an error, also one within a transaction.
func TestRun(t *testing.T) {
	session, err := server.NewSession(dbtest.New(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	for _, step := range []struct{ command, want string }{
		{"SET a x", ""}, {"LPUSH a 1", "WRONGTYPE"}, {"MULTI", ""}, {"INCR a", ""}, {"SET b 1", ""}, {"EXEC", "command 1 of the transaction: ERR"}, {"QUIT", "ended the session"},
	} {
		var args [][]byte
		for word := range strings.FieldsSeq(step.command) {
			args = append(args, []byte(word))
		}
		if err := execute.Run(t.Context(), session, args); (err == nil) != (step.want == "") || err != nil && !strings.Contains(err.Error(), step.want) {
			t.Errorf("%s: %v, want %q", step.command, err, step.want)
		}
	}
}

func TestShown(t *testing.T) {
	for want, args := range map[string][][]byte{
		`"SET a"`:                           {[]byte("SET"), []byte("a"), []byte("b")},
		`"` + strings.Repeat("x", 60) + `"`: {[]byte(strings.Repeat("x", 100))},
	} {
		if got := execute.Shown(args); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
