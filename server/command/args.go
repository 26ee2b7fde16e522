package command

import (
	"bytes"
	"math"
	"slices"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/number"
	"github.com/stavedb/stave/structures"
)

// Args are the words of a request, the command's name first, and how they are read.
type Args [][]byte

// Redis parses strictly, and each kind of argument in its own way: an integer has no sign but a
// minus, no leading zeros and no blanks; a cursor is read like C reads numbers; a NUL ends some
// texts and not others. The error of each kind is part of the protocol. A method named parse...
// returns it.

// Is reports whether argument i is the keyword, given in lower case. It compares bytes, without an
// allocation: a keyword is tried on every argument of every SET.
func (a Args) Is(i int, keyword string) bool { return equalFold(a[i], keyword) }

// words are keywords, in lower case, and what they stand for.
type words[T any] []struct {
	word  string
	value T
}

// find returns what an argument stands for, and false if it is none of the words.
func (w words[T]) find(arg []byte) (value T, ok bool) {
	for i := range w {
		if equalFold(arg, w[i].word) {
			return w[i].value, true
		}
	}
	return value, false
}

// Strings returns the arguments from i on as strings.
func (a Args) Strings(i int) []string { return stringsOf(a[i:]) }

func stringsOf(args [][]byte) []string {
	list := make([]string, 0, len(args))
	for _, arg := range args {
		list = append(list, string(arg))
	}
	return list
}

// ParseInt returns argument i as an integer.
func (a Args) ParseInt(i int) (int64, error) {
	n, ok := number.ParseInt(a[i])
	if !ok {
		return 0, ErrNotInteger
	}
	return n, nil
}

// parseSigned is ParseInt without the lowest integer, which has no opposite.
func (a Args) parseSigned(i int) (int64, error) {
	n, err := a.ParseInt(i)
	if err == nil && n == math.MinInt64 {
		err = errBetween(-math.MaxInt64, math.MaxInt64)
	}
	return n, err
}

// withInt is a handler whose first check is that argument i is an integer.
func withInt(i int, run func(c *Call, n int64) error) func(*Call) error {
	return func(c *Call) error {
		n, err := c.Args.ParseInt(i)
		if err != nil {
			return err
		}
		return run(c, n)
	}
}

// parseCount returns argument i as a count that may not be negative.
func (a Args) parseCount(i int) (int, error) {
	n, ok := number.ParseInt(a[i])
	if !ok || n < 0 || n > math.MaxInt {
		return 0, errNotPositive
	}
	return int(n), nil
}

// parseFrom is parseLeast with two errors: what is no integer has that of ParseInt.
func (a Args) parseFrom(i int, least int64, text Error) (int64, error) {
	n, err := a.ParseInt(i)
	if err == nil && n < least {
		err = text
	}
	return n, err
}

// parseLeast returns argument i as an integer of at least `least`; otherwise it fails with the
// text, which says what is wrong.
func (a Args) parseLeast(i int, least int64, text Error) (int64, error) {
	n, ok := number.ParseInt(a[i])
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

// ParseFloat returns argument i as a double that is not NaN. Infinities are numbers, in Redis's
// spellings of them.
func (a Args) ParseFloat(i int) (float64, error) {
	f, ok := number.ParseFloat(a[i])
	if !ok {
		return 0, errNotFloat
	}
	return f, nil
}

// clampInt is n cut to what an int holds, which is 32 bits on some machines.
func clampInt(n int64) int { return int(min(max(n, -math.MaxInt), math.MaxInt)) }

// parseRange reads two integers, such as start and stop.
func (a Args) parseRange(i int) (start, stop int64, err error) {
	if start, err = a.ParseInt(i); err != nil {
		return 0, 0, err
	}
	stop, err = a.ParseInt(i + 1)
	return start, stop, err
}

// parseKeys reads the number of keys in argument i and returns them and where the next argument is.
// It fails with ErrSyntax if there are fewer.
func (a Args) parseKeys(i int) (keys []string, next int, err error) {
	n, err := a.parseLeast(i, 1, errNumkeys)
	if err != nil {
		return nil, 0, err
	}
	if n > int64(len(a)-i-1) {
		return nil, 0, ErrSyntax
	}
	next = i + 1 + int(n)
	return stringsOf(a[i+1 : next]), next, nil
}

// multiPop is what LMPOP, ZMPOP and their blocking forms have in common: keys, an end and a count.
type multiPop struct {
	keys     []string
	fromBack bool // RIGHT, MAX
	count    int
}

// end is the end of a list that the pop is about.
func (p *multiPop) end() db.End {
	if p.fromBack {
		return db.Back
	}
	return db.Front
}

// parseMultiPop reads the arguments from the number of keys on; front and back are the words for
// the two ends.
func (a Args) parseMultiPop(i int, front, back string) (p multiPop, err error) {
	var next int
	if p.keys, next, err = a.parseKeys(i); err != nil {
		return p, err
	}
	switch {
	case next == len(a) || !a.Is(next, front) && !a.Is(next, back):
		return p, ErrSyntax
	case len(a) == next+1:
		p.count = 1
	case len(a) >= next+3 && a.Is(next+1, "count"):
		n, err := a.parseLeast(next+2, 1, errCount)
		if err != nil {
			return p, err
		}
		if len(a) > next+3 {
			return p, ErrSyntax
		}
		p.count = int(min(n, math.MaxInt32))
	default:
		return p, ErrSyntax
	}
	p.fromBack = a.Is(next, back)
	return p, nil
}

// parseTimeout reads argument i as seconds, 0 for no end. What an int64 of nanoseconds cannot hold,
// 292 years, is no end either. It is rounded up to a millisecond: 0.0001 waits, and does not wait
// for ever.
func (a Args) parseTimeout(i int) (time.Duration, error) {
	long, ok := number.ParseExtended(a[i]) // beyond a double it is out of range or negative, as in Redis
	if !ok {
		return 0, Error("ERR timeout is not a float or out of range")
	}
	seconds, _ := long.Float64()
	if long.Sign() > 0 {
		seconds = max(seconds, math.SmallestNonzeroFloat64) // not 0, which is no end
	}
	ms := math.Ceil(seconds * 1000)
	switch {
	case ms > float64(math.MaxInt64-time.Now().UnixMilli()):
		return 0, Error("ERR timeout is out of range")
	case ms < 0:
		return 0, Error("ERR timeout is negative")
	case ms > float64(math.MaxInt64/int64(time.Millisecond)):
		return 0, nil
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// ParseDatabase returns argument i as the index of a database. A number that is none has another
// error than one out of range.
func (c *Call) ParseDatabase(i int) (int, error) {
	n, err := c.Args.ParseInt(i)
	switch {
	case err != nil:
		return 0, err
	case n < math.MinInt32 || n > math.MaxInt32:
		return 0, errBetween(math.MinInt32, math.MaxInt32)
	case n < 0 || n >= int64(c.Host.Databases):
		return 0, ErrDBIndex
	}
	return int(n), nil
}

// scanOptions are the words after the cursor of a scan.
type scanOptions struct {
	structures.ScanOptions
	emptyPattern bool // MATCH "": package db takes that for no pattern, but it matches the empty name
}

// parseScanOptions parses what follows the cursor of SCAN, HSCAN, SSCAN and ZSCAN: MATCH and COUNT, and
// with other() whatever a command knows besides. other returns how many arguments it took, 0 for
// none of its own.
func (a Args) parseScanOptions(i int, other func(i int) (taken int, err error)) (o scanOptions, err error) {
	for i < len(a) {
		more := len(a) - i - 1
		switch {
		case a.Is(i, "count") && more >= 1:
			n, err := a.parseFrom(i+1, 1, ErrSyntax)
			if err != nil {
				return o, err
			}
			o.Count = int(min(n, math.MaxInt32))
			i += 2
		case a.Is(i, "match") && more >= 1:
			o.Match = string(a[i+1])
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

// scanPage is a page of a scan, and how to reply with one of its items.
type scanPage[T any] struct {
	list  []T
	next  uint64
	err   error
	name  func(T) string
	value func(T) // replies with what follows the name; nil: nothing does
}

// scanned is the page that a scan has returned.
func scanned[T any](list []T, next uint64, err error) scanPage[T] {
	return scanPage[T]{list: list, next: next, err: err}
}

// reply replies with the page. What only seemed to match is dropped first: no name but the empty one matches MATCH "".
func (p scanPage[T]) reply(c *Call, o scanOptions) error {
	if p.err != nil {
		return p.err
	}
	if o.emptyPattern {
		p.list = slices.DeleteFunc(p.list, func(item T) bool { return p.name(item) != "" })
	}
	each := 1
	if p.value != nil {
		each = 2
	}
	c.scanHeader(p.next, each*len(p.list))
	for _, item := range p.list {
		c.Out.BulkString(p.name(item))
		if p.value != nil {
			p.value(item)
		}
	}
	return nil
}

// parseCursor returns argument i as a cursor. Redis reads it with strtoul: a plus is allowed, and a NUL ends it. An
// empty cursor and a negative one are refused, as in Redis 8.
func (a Args) parseCursor(i int) (uint64, error) {
	digits, _, _ := bytes.Cut(a[i], []byte{0})
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
	if len(digits) == 0 || negative && n > 0 {
		return 0, errCursor
	}
	return n, nil
}

// scanCursor does what HSCAN, SSCAN and ZSCAN begin with, in Redis's order: the cursor, the type of
// the key, the options. A key that does not exist gives an empty last page, and done.
func (c *Call) scanCursor(want db.Type, other func(i int) (int, error)) (cursor uint64, o scanOptions, done bool, err error) {
	if cursor, err = c.Args.parseCursor(2); err != nil {
		return 0, o, false, err
	}
	held, err := c.Tx.Key(c.Key(1)).Type()
	switch {
	case err != nil:
		return 0, o, false, err
	case held == db.TypeNone:
		c.scanHeader(0, 0)
		return 0, o, true, nil
	case held != want:
		return 0, o, false, structures.ErrWrongType
	}
	o, err = c.Args.parseScanOptions(3, other)
	return cursor, o, false, err
}
