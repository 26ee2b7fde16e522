package main

import (
	"slices"
	"strconv"
	"strings"
)

// row is a command that reads or writes many elements, what the server holds before it, and what removes its result.
type row struct {
	name     string
	elements func(n int) int
	prepare  func(n int, do func(args ...string) error) error
	command  []string
	many     func(args []string, i int) []string // adds element i to the command
	dumped   bool                                // the last argument is the DUMP of the key "a"
	remove   string                              // the key of the result; "": nothing stays
}

// batch is how many elements one command of a preparation has.
const batch = 1000

func rows() []row {
	same := func(n int) int { return n }
	hash, members := fill("HSET", "a", 0, 1, field), fill("SADD", "a", 0, 1, member)
	scored := fill("ZADD", "a", 0, 1, score)
	return []row{
		// The two sets have no member in common.
		{name: "SUNIONSTORE of 2 x 5 n", elements: func(n int) int { return 10 * n }, command: []string{"SUNIONSTORE", "to", "a", "b"}, remove: "to",
			prepare: both(fill("SADD", "a", 0, 5, member), fill("SADD", "b", 5, 5, member))},
		{name: "SINTERSTORE", elements: same, command: []string{"SINTERSTORE", "to", "a", "b"}, remove: "to", prepare: both(members, fill("SADD", "b", 0, 1, member))},
		{name: "SDIFFSTORE", elements: same, command: []string{"SDIFFSTORE", "to", "a", "none"}, remove: "to", prepare: members},
		{name: "ZUNIONSTORE", elements: same, command: []string{"ZUNIONSTORE", "to", "1", "a"}, remove: "to", prepare: scored},
		{name: "ZRANGESTORE", elements: same, command: []string{"ZRANGESTORE", "to", "a", "0", "-1"}, remove: "to", prepare: scored},
		{name: "GEOSEARCHSTORE", elements: same, remove: "to", prepare: fill("GEOADD", "a", 0, 1, place),
			command: []string{"GEOSEARCHSTORE", "to", "a", "FROMLONLAT", "0", "0", "BYRADIUS", "30000", "km"}},
		{name: "SORT STORE", elements: same, command: []string{"SORT", "a", "STORE", "to"}, remove: "to", prepare: fill("RPUSH", "a", 0, 1, shuffled)},
		{name: "COPY of a hash", elements: same, command: []string{"COPY", "a", "to"}, remove: "to", prepare: hash},
		{name: "COPY of a sorted set", elements: same, command: []string{"COPY", "a", "to"}, remove: "to", prepare: scored},
		{name: "RENAME of a hash", elements: same, command: []string{"RENAME", "a", "to"}, prepare: hash},
		{name: "RESTORE of a hash", elements: same, command: []string{"RESTORE", "to", "0"}, dumped: true, remove: "to", prepare: hash},
		{name: "MSET, keys exist", elements: same, command: []string{"MSET"}, many: field, prepare: func(n int, do func(...string) error) error {
			return fillCommand([]string{"MSET"}, 0, n, field, do)
		}},
		{name: "HSET", elements: same, command: []string{"HSET", "to"}, many: field, remove: "to"},
		{name: "SADD", elements: same, command: []string{"SADD", "to"}, many: member, remove: "to"},
		{name: "ZADD", elements: same, command: []string{"ZADD", "to"}, many: score, remove: "to"},
		{name: "RPUSH", elements: same, command: []string{"RPUSH", "to"}, many: member, remove: "to"},
		// Of a list: an element is inserted in the middle, one is removed there, and all but the first fifth are.
		{name: "LINSERT", elements: same, command: []string{"LINSERT", "a", "BEFORE", "MIDDLE", "value"}, prepare: fill("RPUSH", "a", 0, 1, member)},
		{name: "LREM", elements: same, command: []string{"LREM", "a", "1", "MIDDLE"}, prepare: fill("RPUSH", "a", 0, 1, member)},
		{name: "LTRIM", elements: same, command: []string{"LTRIM", "a", "0", "FIFTH"}, prepare: fill("RPUSH", "a", 0, 1, member)},
		{name: "EVAL of HSETs", elements: same, remove: "to",
			command: []string{"EVAL", "for i = 1, tonumber(ARGV[1]) do redis.call('HSET', KEYS[1], i, 'value') end", "1", "to", "N"}},
	}
}

// The elements of a command, by their number.

func member(args []string, i int) []string { return append(args, "member:"+digits(i)) }
func field(args []string, i int) []string {
	return append(args, "field:"+digits(i), "value:"+digits(i))
}
func score(args []string, i int) []string {
	return append(args, strconv.Itoa(i*7919%1_000_003), "member:"+digits(i))
}
func place(args []string, i int) []string {
	return append(args, strconv.Itoa(i%360-180), strconv.Itoa(i/360%160-80), "member:"+digits(i))
}
func shuffled(args []string, i int) []string { return append(args, strconv.Itoa(i*7919%1_000_003)) }

func digits(i int) string {
	text := strconv.Itoa(i)
	return strings.Repeat("0", max(0, 9-len(text))) + text
}

// fill is a preparation: it adds times*n elements to a key, from element from*n on.
func fill(command, key string, from, times int, add func([]string, int) []string) func(int, func(...string) error) error {
	return func(n int, do func(...string) error) error {
		return fillCommand([]string{command, key}, from*n, (from+times)*n, add, do)
	}
}

func fillCommand(head []string, from, to int, add func([]string, int) []string, do func(...string) error) error {
	for i := from; i < to; {
		args := slices.Clone(head)
		for end := min(i+batch, to); i < end; i++ {
			args = add(args, i)
		}
		if err := do(args...); err != nil {
			return err
		}
	}
	return nil
}

func both(first, second func(int, func(...string) error) error) func(int, func(...string) error) error {
	return func(n int, do func(...string) error) error {
		if err := first(n, do); err != nil {
			return err
		}
		return second(n, do)
	}
}

// arguments are the command for n elements.
func (r *row) arguments(n int) []string {
	args := slices.Clone(r.command)
	for i, arg := range args {
		switch arg {
		case "N":
			args[i] = strconv.Itoa(n)
		case "MIDDLE": // the element of that number
			args[i] = member(nil, n/2)[0]
		case "FIFTH":
			args[i] = strconv.Itoa(n/5 - 1)
		}
	}
	if r.many != nil {
		for i := range n {
			args = r.many(args, i)
		}
	}
	return args
}
