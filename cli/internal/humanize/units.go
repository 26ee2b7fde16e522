package humanize

import (
	"fmt"
	"strings"
	"time"
)

// Size writes a number of bytes the way people do: 12 B, 4.1 KB, 402 MB. Below ten there is a
// digit after the point, so a size has at least two digits that matter.
func Size(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	v, units := float64(n), "KMGTPE"
	i := -1
	for v >= 999.5 && i < len(units)-1 {
		v /= 1000
		i++
	}
	if v < 9.95 {
		return fmt.Sprintf("%.1f %cB", v, units[i])
	}
	return fmt.Sprintf("%.0f %cB", v, units[i])
}

// Count writes a number with thousands separators: 1,234,567.
func Count(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Plural counts things by their name: 0 keys, 1 key, 1,234 keys. The name is one whose plural is
// made with an s.
func Plural[N int | int64 | uint64](n N, name string) string {
	if n != 1 {
		name += "s"
	}
	return Count(int64(n)) + " " + name
}

// Duration writes a duration in the unit that suits it: 3.1 s, 12 ms. It is for sentences;
// [Latency] is for figures that are compared.
func Duration(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%d us", d.Microseconds())
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// Share writes a share in per cent, to as many digits as distinguish a rare one from none.
func Share(share float64) string {
	switch {
	case share == 0:
		return ""
	case share < 0.001:
		return fmt.Sprintf("%.4f %%", share*100)
	}
	return fmt.Sprintf("%.1f %%", share*100)
}

// Latency writes a duration to three digits or so: 512 ns, 2.05 us, 1.3 ms.
func Latency(d time.Duration) string {
	v, unit := float64(d), "ns"
	for _, larger := range []string{"us", "ms", "s"} {
		if v < 1000 {
			break
		}
		v, unit = v/1000, larger
	}
	switch {
	case unit == "ns" || v >= 100:
		return fmt.Sprintf("%.0f %s", v, unit)
	case v >= 10:
		return fmt.Sprintf("%.1f %s", v, unit)
	}
	return fmt.Sprintf("%.2f %s", v, unit)
}

// Percent writes part of whole in per cent, or a dash: a share of nothing is no number.
func Percent(part, whole int64) string {
	if whole <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", float64(part)/float64(whole)*100)
}

// PercentBar draws part of whole, in twenty steps. The nearest step counts, so a share below 2.5 %
// has an empty bar.
func PercentBar(part, whole int64) string {
	const width = 20
	full := 0
	if whole > 0 {
		full = int(float64(part)/float64(whole)*width + 0.5)
	}
	return strings.Repeat("#", full) + strings.Repeat(".", width-full)
}

// Age writes a time of any length in a few characters: 12s, 5m, 3h, 3d 4h.
func Age(d time.Duration) string {
	const day = 24 * time.Hour
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < day:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d%day < time.Hour || d >= 10*day:
		return fmt.Sprintf("%dd", d/day)
	}
	return fmt.Sprintf("%dd %dh", d/day, d%day/time.Hour)
}

// Dead is the share of a segment that is garbage. One without records has none, whatever its
// header takes.
func Dead(live, bytes int64, records uint64) string {
	if records == 0 {
		return "-"
	}
	return Percent(bytes-live, bytes)
}

// PerKey is the memory that a key takes on average: what a machine is chosen by. It is the index
// only; values are in the page cache of the system, which this figure cannot know.
func PerKey(bytes int64, keys int) string {
	if keys == 0 {
		return ""
	}
	return fmt.Sprintf(" (%.0f B per key)", float64(bytes)/float64(keys))
}
