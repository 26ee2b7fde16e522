package command

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
)

// Redis answers these from its allocator. Here MEMORY USAGE is an estimate of package db, and the
// rest are figures of the Go runtime and of the store, under Redis's names where those fit.

// memoryCommands estimate. Values are on disk, so that the memory of a key is what the index holds
// of it.
var memoryCommands = []*Command{{
	Name: "memory", Arity: -2, Group: GroupServer, Run: func(c *Call) error { return ArityError("memory") },
	Subcommands: []*Command{
		{Name: "memory|usage", Arity: -3, Flags: ReadOnly, Keys: objectKey, Run: memoryUsage},
		{Name: "memory|stats", Arity: 2, Flags: Describes, Run: memoryStats},
		{Name: "memory|doctor", Arity: 2, Flags: Describes, Run: memoryDoctor},
		{Name: "memory|malloc-stats", Arity: 2, Flags: Describes, Run: memoryMallocStats},
		{Name: "memory|purge", Arity: 2, Run: memoryPurge},
		HelpRow("memory"),
	},
}}

// memorySamples is how many elements MEMORY USAGE samples by default.
const memorySamples = 5

// memoryUsage is MEMORY USAGE: the size of the key on disk and in the index. SAMPLES 0 reads all
// elements, as in Redis. A large collection is sampled: the sizes of some elements stand for all.
func memoryUsage(c *Call) error {
	samples := int64(memorySamples)
	for i := 3; i < len(c.Args); i += 2 {
		if !c.Args.Is(i, "samples") || i+1 == len(c.Args) {
			return ErrSyntax
		}
		var err error
		if samples, err = c.Args.parseFrom(i+1, 0, ErrSyntax); err != nil {
			return err
		}
	}
	return c.ofKey(func() error {
		u, err := c.Tx.Key(c.Key(2)).Usage(int(min(samples, 1<<30)))
		if err == nil {
			c.Out.Int(u.Disk + u.Memory)
		}
		return err
	})
}

// memoryStats is MEMORY STATS: those of Redis's fields that mean something here. ReadMemStats stops
// the program for a moment: this is not a command to poll every millisecond.
func memoryStats(c *Call) error {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	s := c.Host.Store.Stats()
	return c.Reply([]Fact{
		{"total.allocated", m.HeapAlloc + m.StackInuse}, {"peak.allocated", m.Sys}, {"keys.count", s.Keys},
		{"keys.bytes-per-key", s.IndexBytes / int64(max(s.Keys, 1))}, {"index.bytes", s.IndexBytes},
		{"dataset.bytes", s.LiveBytes}, {"log.bytes", s.Bytes},
	})
}

// memoryDoctor is MEMORY DOCTOR.
func memoryDoctor(c *Call) error {
	s := c.Host.Store.Stats()
	if s.Keys == 0 {
		c.Out.Verbatim("txt", "The store holds no keys.\n")
		return nil
	}
	keys := "1 key"
	if s.Keys > 1 {
		keys = fmt.Sprintf("%d keys", s.Keys)
	}
	c.Out.Verbatim("txt", fmt.Sprintf("The index of %s takes %d bytes of memory, %d a key. Values are on disk: %d bytes, and %d that merges have yet to clear away.\n",
		keys, s.IndexBytes, s.IndexBytes/int64(s.Keys), s.LiveBytes, max(s.Bytes-s.LiveBytes, 0)))
	return nil
}

// memoryPurge is MEMORY PURGE.
func memoryPurge(c *Call) error {
	debug.FreeOSMemory()
	return c.OK()
}

// memoryMallocStats is MEMORY MALLOC-STATS: the figures of the allocator in use, in its own words.
func memoryMallocStats(c *Call) error {
	samples := []metrics.Sample{}
	for _, d := range metrics.All() {
		if strings.HasPrefix(d.Name, "/memory/classes/") || strings.HasPrefix(d.Name, "/gc/heap/") || strings.HasPrefix(d.Name, "/gc/cycles/") {
			samples = append(samples, metrics.Sample{Name: d.Name})
		}
	}
	metrics.Read(samples)
	var text strings.Builder
	text.WriteString("Allocator: that of the Go runtime, " + runtime.Version() + "\n")
	for _, s := range samples {
		if s.Value.Kind() == metrics.KindUint64 {
			fmt.Fprintf(&text, "%s %d\n", s.Name, s.Value.Uint64())
		}
	}
	c.Out.Verbatim("txt", text.String())
	return nil
}
