package humanize

import (
	"strings"
	"testing"
	"time"
)

func TestFigures(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1.0 KB", 9949: "9.9 KB", 9960: "10 KB", 402_000_000: "402 MB", 999_700: "1.0 MB", 1 << 40: "1.1 TB"} {
		if got := Size(n); got != want {
			t.Errorf("Size(%d) = %s, want %s", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567", -999: "-999"} {
		if got := Count(n); got != want {
			t.Errorf("Count(%d) = %s, want %s", n, got, want)
		}
	}
	for n, want := range map[int]string{0: "0 keys", 1: "1 key", 2: "2 keys", 1_000_001: "1,000,001 keys"} {
		if got := Plural(n, "key"); got != want {
			t.Errorf("Plural(%d) = %s, want %s", n, got, want)
		}
	}
	for d, want := range map[time.Duration]string{3100 * time.Millisecond: "3.1 s", 12 * time.Millisecond: "12 ms", 90 * time.Second: "1m30s", 5 * time.Microsecond: "5 us"} {
		if got := Duration(d); got != want {
			t.Errorf("Duration(%v) = %s, want %s", d, got, want)
		}
	}
}

func TestLatenciesAndShares(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 ns", 512: "512 ns", 999: "999 ns", 1000: "1.00 us", 2050: "2.05 us", 12_340: "12.3 us", 123_400: "123 us",
		1_300_000: "1.30 ms", 999_900_000: "1000 ms", 65 * time.Second: "65.0 s",
	} {
		if got := Latency(d); got != want {
			t.Errorf("Latency(%d) = %s, want %s", d, got, want)
		}
	}
	for share, want := range map[float64]string{0: "", 0.00001: "0.0010 %", 0.0009: "0.0900 %", 0.5: "50.0 %", 1: "100.0 %"} {
		if got := Share(share); got != want {
			t.Errorf("Share(%v) = %s, want %s", share, got, want)
		}
	}
	for part, want := range map[int64]string{0: "0 %", 1: "33 %", 3: "100 %"} {
		if got := Percent(part, 3); got != want {
			t.Errorf("Percent(%d, 3) = %s", part, got)
		}
	}
	if Percent(0, 0) != "-" || PercentBar(0, 0) != strings.Repeat(".", 20) || PercentBar(1, 2) != "##########.........." {
		t.Errorf("%s %s %s", Percent(0, 0), PercentBar(0, 0), PercentBar(1, 2))
	}
}

func TestAges(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 59 * time.Second: "59s", time.Hour - 1: "59m", 23*time.Hour + time.Minute: "23h", 24 * time.Hour: "1d", 76 * time.Hour: "3d 4h", 241 * time.Hour: "10d",
	} {
		if got := Age(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

func TestName(t *testing.T) {
	for name, want := range map[string]string{"user:1": "user:1", "": "", "a long name": "a long…", "ééééééé": "ééééééé", "éééééééé": "éééééé…", "\x1b[2J": `"\x1b[…`, "\xff": `"\xff"`} {
		if got := Name(name, 7); got != want {
			t.Errorf("Name(%q) = %s, want %s", name, got, want)
		}
	}
}
