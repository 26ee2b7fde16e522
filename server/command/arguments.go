package command

import (
	"bytes"
	"math"
	"slices"

	"github.com/stavedb/stave/internal/number"
	"github.com/stavedb/stave/structures"
)

// ParseInt returns argument i as an integer.
func (c *Call) ParseInt(i int) (int64, error) {
	n, ok := number.ParseInt(c.Args[i])
	if !ok {
		return 0, ErrNotInteger
	}
	return n, nil
}

// parsePositive returns argument i as a count that may not be negative.
func (c *Call) parsePositive(i int) (int, error) {
	n, ok := number.ParseInt(c.Args[i])
	if !ok || n < 0 || n > math.MaxInt {
		return 0, errNotPositive
	}
	return int(n), nil
}

// parseLeast returns argument i as an integer of at least `least`; otherwise it fails with the text, which says what is wrong.
func (c *Call) parseLeast(i int, least int64, text Error) (int64, error) {
	n, ok := number.ParseInt(c.Args[i])
	if !ok || n < least {
		return 0, text
	}
	return n, nil
}

// The refusals of counts.
const (
	errNumkeys       Error = "ERR numkeys should be greater than 0"
	errCount         Error = "ERR count should be greater than 0"
	errLimitNegative Error = "ERR LIMIT can't be negative"
)

// parseKeys reads the number of keys in argument i and returns them and where the next argument is. It fails with
// errSyntax if there are fewer.
func (c *Call) parseKeys(i int) (keys []string, next int, err error) {
	n, err := c.parseLeast(i, 1, errNumkeys)
	if err != nil {
		return nil, 0, err
	}
	if n > int64(len(c.Args)-i-1) {
		return nil, 0, ErrSyntax
	}
	next = i + 1 + int(n)
	return stringsOf(c.Args[i+1 : next]), next, nil
}

func stringsOf(args [][]byte) []string {
	list := make([]string, 0, len(args))
	for _, arg := range args {
		list = append(list, string(arg))
	}
	return list
}

// ParseFloat returns argument i as a double that is not NaN.
func (c *Call) ParseFloat(i int) (float64, error) {
	f, ok := number.ParseFloat(c.Args[i])
	if !ok {
		return 0, errNotFloat
	}
	return f, nil
}

// Is reports whether argument i is the keyword, given in lower case.
func (c *Call) Is(i int, keyword string) bool { return equalFold(c.Args[i], keyword) }

// Strings returns the arguments from i on as strings.
func (c *Call) Strings(i int) []string { return stringsOf(c.Args[i:]) }

// scanOptions are the words behind the cursor of a scan.
type scanOptions struct {
	structures.ScanOptions
	emptyPattern bool // MATCH "": package db takes that for no pattern, but it matches the empty name
}

// dropUnmatched drops what only seemed to match.
func dropUnmatched[T any](o scanOptions, list []T, name func(T) string) []T {
	if !o.emptyPattern {
		return list
	}
	return slices.DeleteFunc(list, func(item T) bool { return name(item) != "" })
}

// scanOptions parses what follows the cursor of SCAN, HSCAN, SSCAN and ZSCAN: MATCH and COUNT, and with other() whatever
// a command knows besides. other returns how many arguments it took, 0 for none of its own.
func (c *Call) scanOptions(i int, other func(i int) (taken int, err error)) (o scanOptions, err error) {
	for i < len(c.Args) {
		more := len(c.Args) - i - 1
		switch {
		case c.Is(i, "count") && more >= 1:
			n, err := c.ParseInt(i + 1)
			if err != nil {
				return o, err
			}
			if n < 1 {
				return o, ErrSyntax
			}
			o.Count = int(min(n, math.MaxInt32))
			i += 2
		case c.Is(i, "match") && more >= 1:
			o.Match = string(c.Args[i+1])
			o.emptyPattern = o.Match == ""
			i += 2
		default:
			taken := 0
			if other != nil {
				if taken, err = other(i); err != nil {
					return o, err
				}
			}
			if taken == 0 {
				return o, ErrSyntax
			}
			i += taken
		}
	}
	return o, nil
}

// parseCursor returns argument i as a cursor. Redis reads it with strtoul: a sign is allowed, nothing at all is 0, and a NUL
// ends it.
func (c *Call) parseCursor(i int) (uint64, error) {
	digits, _, _ := bytes.Cut(c.Args[i], []byte{0})
	negative := false
	if len(digits) > 1 && (digits[0] == '-' || digits[0] == '+') {
		negative = digits[0] == '-'
		digits = digits[1:]
	}
	var n uint64
	for _, c := range digits {
		digit := uint64(c - '0')
		if digit > 9 || n > (math.MaxUint64-digit)/10 {
			return 0, errCursor
		}
		n = n*10 + digit
	}
	if negative {
		n = -n
	}
	return n, nil
}
