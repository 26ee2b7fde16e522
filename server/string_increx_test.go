package server_test

import (
	"fmt"
	"testing"
)

// INCREX came with Redis 8.8: a case for each sentence of its documents.
func TestIncrementWithin(t *testing.T) {
	const (
		noInt   = "-ERR value is not an integer or out of range\r\n"
		noFloat = "-ERR value is not a valid float\r\n"
		crossed = "-ERR the lower bound is greater than the upper bound\r\n"
	)
	ints := func(value, added int64) string { return fmt.Sprintf("*2\r\n:%d\r\n:%d\r\n", value, added) }
	floats := func(value, added string) string { return "*2\r\n" + bulkLine(value) + bulkLine(added) }
	expectLines(t, []line{
		// Without an amount one is added; a key that does not exist is 0.
		{"INCREX n", ints(1, 1)},
		{"INCREX n BYINT 4", ints(5, 4)},
		{"INCREX n byint -7", ints(-2, -7)},
		{"GET n", bulkLine("-2")},

		// A sum beyond a bound is not written, and 0 was added; the deadline stays as it is.
		{"SET n 10 EX 100", okLine},
		{"INCREX n BYINT 5 UBOUND 12 EX 5000", ints(10, 0)},
		{"INCREX n BYINT 2 LBOUND 20", ints(10, 0)},
		{"INCREX n BYINT -1 UBOUND 5 PERSIST", ints(10, 0)},
		{"TTL n", ":100\r\n"},
		{"INCREX n BYINT 2 UBOUND 12 LBOUND 12", ints(12, 2)},
		{"TTL n", ":100\r\n"},
		{"INCREX new UBOUND 0", ints(0, 0)},
		{"EXISTS new", ":0\r\n"},

		// SATURATE writes the bound instead, or the last integer.
		{"INCREX n BYINT 5 UBOUND 14 SATURATE", ints(14, 2)},
		{"INCREX n BYINT -50 LBOUND 0 SATURATE", ints(0, -14)},
		{"INCREX n BYINT -1 LBOUND 0 SATURATE", ints(0, 0)},
		{"INCREX n BYINT 1 UBOUND -5 SATURATE", ints(-5, -5)},
		{"SET n 9223372036854775800", okLine},
		{"INCREX n BYINT 1000", ints(9223372036854775800, 0)},
		{"INCREX n BYINT 1000 SATURATE", ints(9223372036854775807, 7)},
		{"SET n -9223372036854775800", okLine},
		{"INCREX n BYINT -1000 SATURATE", ints(-9223372036854775808, -8)},
		{"INCREX n BYINT 1 LBOUND 9223372036854775807 SATURATE", "-ERR increment or decrement would overflow\r\n"},
		{"GET n", bulkLine("-9223372036854775808")},

		// Deadlines: ENX sets one only where there is none.
		{"SET n 1", okLine},
		{"INCREX n EX 60 ENX", ints(2, 1)},
		{"TTL n", ":60\r\n"},
		{"INCREX n EX 600 ENX", ints(3, 1)},
		{"TTL n", ":60\r\n"},
		{"INCREX n PX 600", ints(4, 1)},
		{"PTTL n", ":600\r\n"},
		{"INCREX n PERSIST", ints(5, 1)},
		{"TTL n", ":-1\r\n"},
		{"INCREX n PXAT 1", ints(6, 1)},
		{"EXISTS n", ":0\r\n"},
		{"INCREX window PX 30 ENX UBOUND 2", ints(1, 1)},
		{"INCREX window PX 30 ENX UBOUND 2", ints(2, 1)},
		{"INCREX window PX 30 ENX UBOUND 2", ints(2, 0)},
		{"sleep", ""},
		{"INCREX window PX 30 ENX UBOUND 2", ints(1, 1)},

		// Floats.
		{"SET f 1.5", okLine},
		{"INCREX f BYFLOAT 0.25 LBOUND 0 UBOUND 2", floats("1.75", "0.25")},
		{"INCREX f BYFLOAT 0.75 LBOUND 0 UBOUND 2", floats("1.75", "0")},
		{"INCREX f BYFLOAT 0.75 LBOUND 0 UBOUND 2 SATURATE", floats("2", "0.25")},
		{"INCREX f BYFLOAT -7 LBOUND -0.5 SATURATE", floats("-0.5", "-2.5")},
		{"INCREX f BYFLOAT 0", floats("-0.5", "0")},
		{"INCREX new BYFLOAT 3.0e3", floats("3000", "3000")},
		{"SET huge 1e4932", okLine},
		{"INCREX huge BYFLOAT 1e4932", "-ERR increment would produce NaN or Infinity\r\n"},
		{"INCREX huge BYFLOAT 1e4932 UBOUND 5 SATURATE BYFLOAT 1", syntaxLine},
		{"INCREX huge BYFLOAT inf UBOUND 5 SATURATE", "-ERR increment would produce NaN or Infinity\r\n"},
		{"INCREX f BYFLOAT 1 UBOUND inf SATURATE", floats("0.5", "1")},

		// Refusals change nothing.
		{"SET text words", okLine},
		{"INCREX text", noInt},
		{"INCREX text BYFLOAT 1", noFloat},
		{"RPUSH l a", ":1\r\n"},
		{"INCREX l", wrongTypeLine},
		{"INCREX f", noInt},
		{"INCREX n BYINT 1.5", noInt},
		{"INCREX n LBOUND 0.5", noInt},
		{"INCREX n UBOUND x", noInt},
		{"INCREX n BYFLOAT x", noFloat},
		{"INCREX n BYFLOAT 1 LBOUND x", noFloat},
		{`INCREX n BYFLOAT 1 UBOUND ""`, noFloat},
		{"INCREX n LBOUND 2 UBOUND 1", crossed},
		{"INCREX n BYFLOAT 1 LBOUND 2 UBOUND 1", crossed},
		{"INCREX n BYINT 1 BYFLOAT 1", syntaxLine},
		{"INCREX n BYINT", syntaxLine},
		{"INCREX n EX 1 PX 1", syntaxLine},
		{"INCREX n EX 1 PERSIST", syntaxLine},
		{"INCREX n PERSIST EX 1", syntaxLine},
		{"INCREX n ENX", syntaxLine},
		{"INCREX n PERSIST ENX", syntaxLine},
		{"INCREX n what", syntaxLine},
		{"INCREX n EX 0", "-ERR invalid expire time in 'increx' command\r\n"},
		{"EXISTS n", ":0\r\n"},
	})
}
