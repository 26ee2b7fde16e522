package server_test

import (
	"fmt"
	"testing"
)

// LMOVEM came with Redis 8.10: a case for each sentence of its documents.
func TestMoveMany(t *testing.T) {
	expectLines(t, []line{
		{"RPUSH l 1 2 3 4 5", ":5\r\n"},
		{"RPUSH m 6 7", ":2\r\n"},
		{"LMOVEM l m LEFT LEFT COUNT 3 OBO", arrayLine("3", "2", "1")}, // each is pushed as it is popped
		{"LRANGE m 0 -1", arrayLine("3", "2", "1", "6", "7")},
		{"LMOVEM m l left left count 3 bulk", arrayLine("3", "2", "1")}, // the order stays
		{"LRANGE l 0 -1", arrayLine("3", "2", "1", "4", "5")},
		{"LMOVEM l m RIGHT LEFT COUNT 2 BULK", arrayLine("4", "5")},
		{"LRANGE m 0 -1", arrayLine("4", "5", "6", "7")},
		{"LMOVEM l m LEFT RIGHT", arrayLine("3")},           // one element, and still an array
		{"LMOVEM l m LEFT RIGHT EXACTLY 3 BULK", "*-1\r\n"}, // nothing is moved if there are fewer
		{"LRANGE l 0 -1", arrayLine("2", "1")},
		{"LMOVEM l m LEFT RIGHT EXACTLY 2 BULK", arrayLine("2", "1")},
		{"EXISTS l", ":0\r\n"},
		{"LMOVEM l m LEFT RIGHT COUNT 2 BULK", "*-1\r\n"},
		{"LMOVEM m m LEFT RIGHT COUNT 2 BULK", arrayLine("4", "5")},
		{"LMOVEM m other LEFT RIGHT COUNT 100 BULK", arrayLine("6", "7", "3", "2", "1", "4", "5")}, // as many as there are
		{"EXISTS m other", ":1\r\n"},
		{"SET string v", okLine},
		{"LMOVEM other string LEFT RIGHT COUNT 1 BULK", wrongTypeLine},
		{"LLEN other", ":7\r\n"},
		{"LMOVEM string other LEFT RIGHT COUNT 1 BULK", wrongTypeLine},
		{"LMOVEM other m LEFT UP", syntaxLine},
		{"LMOVEM other m LEFT RIGHT COUNT 1", syntaxLine},
		{"LMOVEM other m LEFT RIGHT COUNT 1 ALL", syntaxLine},
		{"LMOVEM other m LEFT RIGHT MOST 1 OBO", syntaxLine},
		{"LMOVEM other m LEFT RIGHT COUNT 1 OBO x", syntaxLine},
		{"LMOVEM other m LEFT RIGHT COUNT 0 OBO", "-ERR count should be greater than 0\r\n"},
		{"LMOVEM other m LEFT RIGHT EXACTLY x OBO", "-ERR count should be greater than 0\r\n"},
		{"LMOVEM other m LEFT", arityLine("lmovem")},
	})
}

// arrayLine is an array of strings.
func arrayLine(list ...string) string {
	b := fmt.Sprintf("*%d\r\n", len(list))
	for _, s := range list {
		b += bulkLine(s)
	}
	return b
}
