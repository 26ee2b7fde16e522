package server_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// TestScanCursors: cursors are as short as those that clients of Redis meet. Some read them as signed integers, and
// JavaScript's as numbers that are exact up to 2^53. Each element comes once all the same.
func TestScanCursors(t *testing.T) {
	const elements = 2000
	s := newSession(t, openStore(t), nil)
	for i := range elements {
		ask(s, fmt.Sprintf("SET key%d v\r\nSADD {c}set m%d\r\nHSET {c}hash f%d v\r\nZADD {c}zset %d m%d\r\n", i, i, i, i, i))
	}
	for _, tt := range []struct {
		scan     string // with the cursor left out
		elements int
		step     int // replies of one element
	}{
		{"SCAN %s COUNT 7", elements + 3, 1}, {"SSCAN {c}set %s COUNT 7", elements, 1}, {"HSCAN {c}hash %s COUNT 7", elements, 2}, {"ZSCAN {c}zset %s COUNT 7", elements, 2},
	} {
		seen, calls := map[string]int{}, 0
		for cursor := "0"; ; calls++ {
			lines := strings.Split(ask(s, fmt.Sprintf(tt.scan, cursor)+"\r\n"), "\r\n")
			cursor = lines[2]
			n, err := strconv.ParseUint(cursor, 10, 64)
			if err != nil || n >= 1<<53 {
				t.Fatalf("%s: cursor %q, %v", tt.scan, cursor, err)
			}
			for i := 5; i < len(lines); i += 2 * tt.step {
				seen[lines[i]]++
			}
			if cursor == "0" {
				break
			}
		}
		if len(seen) != tt.elements || calls < tt.elements/10 {
			t.Errorf("%s: %d elements in %d calls, want %d", tt.scan, len(seen), calls, tt.elements)
		}
		for element, times := range seen {
			if times != 1 {
				t.Errorf("%s: %q came %d times", tt.scan, element, times)
			}
		}
		for _, beyond := range []string{"9007199254740992", "9223372036854775807", "18446744073709551615"} {
			if got := ask(s, fmt.Sprintf(tt.scan, beyond)+"\r\n"); got != "*2\r\n$1\r\n0\r\n*0\r\n" {
				t.Errorf("%s from %s: %q", tt.scan, beyond, got)
			}
		}
	}
}
