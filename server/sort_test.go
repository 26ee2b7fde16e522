package server_test

import (
	"testing"
)

func TestSortKeys(t *testing.T) {
	s := newSession(t, openStore(t), nil)
	for _, tt := range []struct{ in, out string }{
		{"COMMAND GETKEYS SORT a BY store GET store STORE b\r\n", "*2\r\n$1\r\na\r\n$1\r\nb\r\n"},
		{"COMMAND GETKEYS SORT a LIMIT store 1 store b STORE c\r\n", "*2\r\n$1\r\na\r\n$1\r\nc\r\n"},
		{"COMMAND GETKEYS SORT_RO a BY b*\r\n", "*1\r\n$1\r\na\r\n"},
		{"RPUSH list 2 1\r\n", ":2\r\n"},
		{"SET weight:2 1\r\n", "+OK\r\n"},
		{"MULTI\r\n", "+OK\r\n"},
		{"SORT list BY weight:* GET # GET weight:* STORE dest\r\n", "+QUEUED\r\n"},
		{"SORT_RO dest ALPHA\r\n", "+QUEUED\r\n"},
		{"SORT_RO dest ALPHA STORE x\r\n", "+QUEUED\r\n"},
		{"EXEC\r\n", "*3\r\n:4\r\n*4\r\n$0\r\n\r\n$1\r\n1\r\n$1\r\n1\r\n$1\r\n2\r\n-ERR syntax error\r\n"},
	} {
		if got := ask(s, tt.in); got != tt.out {
			t.Errorf("%q:\n got %q\nwant %q", tt.in, got, tt.out)
		}
	}
}
