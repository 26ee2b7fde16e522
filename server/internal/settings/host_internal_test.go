package settings

import "testing"

// TestIsHost: what cannot be a word of bind is told from what may be a host.
func TestIsHost(t *testing.T) {
	for word, want := range map[string]bool{
		"127.0.0.1": true, "-::1": true, "*": true, "-::*": true, "fe80::1%eth0": true, "localhost": true, "db-1.example.org": true, "db_1": true, "1host": true,
		"host.": true, "bücher.example": true,
		"999.0.0.1": false, "1.2.3": false, "1": false, "127.0.0.1:6380": false, "host:1": false, "[::1]": false, "-": false, "--": false, "a..b": false,
		"a/b": false, "::1::": false, "-*x": false, "127.0.0.1,::1": false,
	} {
		if isHost(word) != want {
			t.Errorf("%q: %v", word, !want)
		}
	}
}
