package main

import (
	"fmt"
	"math/rand/v2"
	"strconv"
)

// structureSizes are how many elements the collections have, one size a step.
func structureSizes(n int) []int { return []int{1000, max(n, 1000)} }

const structureSteps = 2

// spoken is a structure as commands see it.
type spoken struct {
	name string
	load func(i int) []string                      // the command that adds element i, which is its last argument or arguments
	each int                                       // arguments of an element; several elements are added by one command
	ops  func(n int, r *rand.Rand) []spokenCommand // the timed commands, on n elements
}

// spokenCommand is a command that is timed.
type spokenCommand struct {
	label string
	make  func(i int) []string
	undo  func(i int) []string // undoes the i-th command, untimed; may be nil
}

func text(i int) string { return strconv.Itoa(i) }

func scoreOf(i int) string { return text(int(scramble(i ^ 0x5555))) }

// spokenStructures are the structures, with the commands that most programs live on.
var spokenStructures = []spoken{
	{"string", func(i int) []string { return []string{"MSET", stringKey(i), string(newText(i))} }, 2, func(n int, r *rand.Rand) []spokenCommand {
		return []spokenCommand{
			{"SET, new key", func(i int) []string { return []string{"SET", stringKey(n + i), newText(i)} }, func(i int) []string { return []string{"DEL", stringKey(n + i)} }},
			{"SET, overwrite", func(i int) []string { return []string{"SET", stringKey(r.IntN(n)), newText(i)} }, nil},
			{"GET", func(int) []string { return []string{"GET", stringKey(r.IntN(n))} }, nil},
		}
	}},
	{"hash", func(i int) []string { return []string{"HSET", "hash", element(i), string(shortValue(i))} }, 2, func(n int, r *rand.Rand) []spokenCommand {
		return []spokenCommand{
			{"HSET, new field", func(i int) []string { return []string{"HSET", "hash", element(n + i), "value"} }, func(i int) []string { return []string{"HDEL", "hash", element(n + i)} }},
			{"HSET, overwrite", func(i int) []string { return []string{"HSET", "hash", element(r.IntN(n)), text(i)} }, nil},
			{"HGET", func(int) []string { return []string{"HGET", "hash", element(r.IntN(n))} }, nil},
		}
	}},
	{"list", func(i int) []string { return []string{"RPUSH", "list", element(i)} }, 1, func(n int, r *rand.Rand) []spokenCommand {
		return []spokenCommand{
			{"RPUSH", func(i int) []string { return []string{"RPUSH", "list", element(i)} }, func(int) []string { return []string{"RPOP", "list"} }},
			{"LPOP", func(int) []string { return []string{"LPOP", "list"} }, func(i int) []string { return []string{"LPUSH", "list", element(i)} }},
			{"LINDEX", func(int) []string { return []string{"LINDEX", "list", text(r.IntN(n))} }, nil},
			{"LRANGE, 10", func(int) []string {
				from := r.IntN(n - some)
				return []string{"LRANGE", "list", text(from), text(from + some - 1)}
			}, nil},
		}
	}},
	{"set", func(i int) []string { return []string{"SADD", "set", element(i)} }, 1, func(n int, r *rand.Rand) []spokenCommand {
		return []spokenCommand{
			{"SADD, new member", func(i int) []string { return []string{"SADD", "set", element(n + i)} }, func(i int) []string { return []string{"SREM", "set", element(n + i)} }},
			{"SISMEMBER", func(int) []string { return []string{"SISMEMBER", "set", element(r.IntN(n))} }, nil},
			{"SRANDMEMBER", func(int) []string { return []string{"SRANDMEMBER", "set"} }, nil},
		}
	}},
	{"zset", func(i int) []string { return []string{"ZADD", "zset", scoreOf(i), element(i)} }, 2, func(n int, r *rand.Rand) []spokenCommand {
		return []spokenCommand{
			{"ZADD, new member", func(i int) []string { return []string{"ZADD", "zset", scoreOf(n + i), element(n + i)} }, func(i int) []string { return []string{"ZREM", "zset", element(n + i)} }},
			{"ZADD, other score", func(int) []string { return []string{"ZADD", "zset", text(int(r.Uint32())), element(r.IntN(n))} }, nil},
			{"ZSCORE", func(int) []string { return []string{"ZSCORE", "zset", element(r.IntN(n))} }, nil},
			{"ZRANK", func(int) []string { return []string{"ZRANK", "zset", element(r.IntN(n))} }, nil},
			{"ZRANGE, 10 by rank", func(int) []string {
				from := r.IntN(n - some)
				return []string{"ZRANGE", "zset", text(from), text(from + some - 1)}
			}, nil},
			{"ZRANGE, 10 by score", func(int) []string {
				return []string{"ZRANGE", "zset", text(int(r.Uint32() / 2)), "+inf", "BYSCORE", "LIMIT", "0", text(some)}
			}, nil},
		}
	}},
	{"geo", func(i int) []string { return join("GEOADD", "geo", place(i), element(i)) }, 3, func(n int, r *rand.Rand) []spokenCommand {
		return []spokenCommand{
			{"GEOADD, new place", func(i int) []string { return join("GEOADD", "geo", place(n+i), element(n+i)) }, func(i int) []string { return []string{"ZREM", "geo", element(n + i)} }},
			{"GEOSEARCH, 10 nearest", func(int) []string {
				return []string{"GEOSEARCH", "geo", "FROMMEMBER", element(r.IntN(n)), "BYRADIUS", "50", "km", "ASC", "COUNT", text(some)}
			}, nil},
		}
	}},
	{"bitmap", func(i int) []string { return []string{"BITFIELD", "bitmap", "SET", "u1", text(i), text(i & 1)} }, 4, func(n int, r *rand.Rand) []spokenCommand {
		return []spokenCommand{
			{"SETBIT", func(i int) []string { return []string{"SETBIT", "bitmap", text(r.IntN(n)), text(i & 1)} }, nil},
			{"GETBIT", func(int) []string { return []string{"GETBIT", "bitmap", text(r.IntN(n))} }, nil},
			{"BITCOUNT", func(int) []string { return []string{"BITCOUNT", "bitmap"} }, nil},
		}
	}},
	{"hyperloglog", func(i int) []string { return []string{"PFADD", "sketch", element(i)} }, 1, func(n int, r *rand.Rand) []spokenCommand {
		return []spokenCommand{
			{"PFADD", func(i int) []string { return []string{"PFADD", "sketch", element(r.IntN(n))} }, nil},
			{"PFCOUNT", func(int) []string { return []string{"PFCOUNT", "sketch"} }, nil},
		}
	}},
}

func stringKey(i int) string { return keyAt(int(scramble(i))) }

var textPool = newValues()

// newText is a value of 128 bytes.
func newText(i int) string { return string(textPool.at(i)) }

// place is somewhere on Earth.
func place(i int) []string {
	at := scramble(i)
	return []string{fmt.Sprintf("%.4f", float64(at%36000)/100-180), fmt.Sprintf("%.4f", float64(at/36000%17000)/100-85)}
}

func join(parts ...any) (all []string) {
	for _, part := range parts {
		switch part := part.(type) {
		case string:
			all = append(all, part)
		case []string:
			all = append(all, part...)
		}
	}
	return all
}
