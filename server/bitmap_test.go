package server_test

import (
	"testing"
)

// Redis 7.0 looks at the key before the arguments; since 7.2 it is the other way round.
func TestBitmapRefusalsBeforeTheKey(t *testing.T) {
	s := newSession(t, openStore(t), nil)
	const notInteger, syntax = "-ERR value is not an integer or out of range\r\n", "-ERR syntax error\r\n"
	ask(s, "LPUSH list x\r\n")
	for _, key := range []string{"none", "list"} {
		for cmd, want := range map[string]string{
			"BITCOUNT " + key + " x 1":        notInteger,
			"BITCOUNT " + key + " 1 x":        notInteger,
			"BITCOUNT " + key + " 1":          syntax,
			"BITCOUNT " + key + " 1 2 WORD":   syntax,
			"BITCOUNT " + key + " 1 2 BIT 3":  syntax,
			"BITPOS " + key + " 1 x":          notInteger,
			"BITPOS " + key + " 1 1 x":        notInteger,
			"BITPOS " + key + " 1 1 x WORD":   syntax,
			"BITPOS " + key + " 1 1 2 BIT 3":  syntax,
			"BITPOS " + key + " 2":            "-ERR The bit argument must be 1 or 0.\r\n",
			"BITFIELD " + key + " GET u64 0":  "-ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.\r\n",
			"GETBIT " + key + " -1":           "-ERR bit offset is not an integer or out of range\r\n",
			"SETBIT " + key + " 4294967296 1": "-ERR bit offset is not an integer or out of range\r\n",
		} {
			if got := ask(s, cmd+"\r\n"); got != want {
				t.Errorf("%s: %q, want %q", cmd, got, want)
			}
		}
	}
}
