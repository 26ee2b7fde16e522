package terminal

import (
	"testing"
	"time"
)

func TestTexts(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1.0 KB", 9949: "9.9 KB", 9960: "10 KB", 402_000_000: "402 MB", 999_700: "1.0 MB", 1 << 40: "1.1 TB"} {
		if got := Size(n); got != want {
			t.Errorf("sizeText(%d) = %s, want %s", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567", -999: "-999"} {
		if got := Count(n); got != want {
			t.Errorf("countText(%d) = %s, want %s", n, got, want)
		}
	}
	for n, want := range map[int]string{0: "0 keys", 1: "1 key", 2: "2 keys", 1_000_001: "1,000,001 keys"} {
		if got := Plural(n, "key"); got != want {
			t.Errorf("plural(%d) = %s, want %s", n, got, want)
		}
	}
	for d, want := range map[time.Duration]string{3100 * time.Millisecond: "3.1 s", 12 * time.Millisecond: "12 ms", 90 * time.Second: "1m30s", 5 * time.Microsecond: "5 us"} {
		if got := Duration(d); got != want {
			t.Errorf("durationText(%v) = %s, want %s", d, got, want)
		}
	}
}
