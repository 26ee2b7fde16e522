package server

import (
	"fmt"
	"runtime"
	"strings"
)

var memoryCommands = []*Command{{
	Name: "memory", Arity: -2, Group: GroupServer, Since: "4.0.0", Complexity: "Depends on the subcommand",
	Summary: "Tells what keys and the server take.", Syntax: "subcommand", run: func(c *call) error { return errArity("memory") },
	Subcommands: []*Command{
		{
			Name: "memory|usage", Arity: -3, Flags: ReadOnly, Keys: objectKey, Since: "4.0.0",
			Complexity: "O(n), n being the number of samples", Syntax: "key [SAMPLES count]", run: memoryUsage,
			Summary: "Estimates the bytes of a key, on disk and in the index in memory.",
		},
		{
			Name: "memory|stats", Arity: 2, Since: "4.0.0", Complexity: "O(1)", run: memoryStats,
			Summary: "Tells what the server takes in memory and on disk.",
		},
		{
			Name: "memory|doctor", Arity: 2, Since: "4.0.0", Complexity: "O(1)", run: memoryDoctor,
			Summary: "Says in words what memory is used for.",
		},
		{
			Name: "memory|help", Arity: 2, Flags: Loading | Stale, Since: "4.0.0", Complexity: "O(1)", Summary: "Lists the subcommands.",
			run: containerHelp,
		},
	},
}}

// memorySamples is how many elements MEMORY USAGE looks at if it is not told.
const memorySamples = 5

func memoryUsage(c *call) error {
	samples := int64(memorySamples)
	for i := 3; i < len(c.args); i += 2 {
		if !strings.EqualFold(string(c.arg(i)), "samples") || i+1 == len(c.args) {
			return errSyntax
		}
		var err error
		if samples, err = c.parseInt(i + 1); err != nil {
			return err
		}
		if samples < 0 {
			return errSyntax
		}
	}
	return c.ofKey(func() error {
		u, err := c.tx.Key(c.key(2)).Usage(int(min(samples, 1<<30)))
		if err == nil {
			c.out.Int(u.Disk + u.Memory)
		}
		return err
	})
}

func memoryStats(c *call) error {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	s := c.host.Store.Stats()
	return c.facts([]fact{
		{"total.allocated", m.HeapAlloc + m.StackInuse}, {"peak.allocated", m.Sys}, {"keys.count", s.Keys},
		{"keys.bytes-per-key", s.IndexBytes / int64(max(s.Keys, 1))}, {"index.bytes", s.IndexBytes},
		{"dataset.bytes", s.LiveBytes}, {"log.bytes", s.Bytes},
	})
}

func memoryDoctor(c *call) error {
	s := c.host.Store.Stats()
	c.out.Verbatim("txt", fmt.Sprintf("The index of %d keys takes %d bytes of memory, %d a key. Values are on disk: %d bytes, and %d that merges have yet to clear away.\n",
		s.Keys, s.IndexBytes, s.IndexBytes/int64(max(s.Keys, 1)), s.LiveBytes, max(s.Bytes-s.LiveBytes, 0)))
	return nil
}
