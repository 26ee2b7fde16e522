// Package check finds everything about a store that is not as the format promises, and changes nothing: [Run] reads all
// of it. What the rules of its findings are, says bitcask.Store.Check.
package check

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/bitcask/internal/system"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// Environment is what a check needs of the store. Merges must not end meanwhile.
type Environment struct {
	FS       vfs.FS
	Dir      string
	ID       [16]byte
	Seed     keydir.Seed
	Segments *atomic.Pointer[segment.Set]
	Spaces   *namespace.Table
	System   *system.Records
	Lock     func(stripe int, write bool) error // the stripe is loaded then
	Unlock   func(stripe int, write bool)
	Damage   []failure.CorruptError // that was tolerated when the store was opened
	Read     func(bytes int64)      // told of bytes that have been dealt with
	NoIndex  bool                   // the INDEX is of another moment
	Places   func() bool            // reports whether the manifest announces that lists have holes

	// Again opens the store once more, with its INDEX, or returns nil if it is of another moment by now. The field is
	// nil where the log cannot tell what the INDEX should contain.
	Again func(context.Context) (again *Environment, done func() error, err error)
}

// Result says how much was checked.
type Result struct {
	Segments int
	Bytes    int64
	Records  uint64
	Hints    int
	Index    bool // there is an INDEX that fits the log
	Compared bool // what a replay of the log makes was compared
	Keys     int
	Findings int
}

// Run checks a store. The error is about a check that could not be made, not about its findings.
func Run(ctx context.Context, env *Environment, report func(rule, file string, offset int64, key, detail string)) (Result, error) {
	c := &checker{Environment: env, ctx: ctx, report: report}
	for _, d := range env.Damage {
		c.found("I2", d.File, d.Offset, "", "%s", d.Reason)
	}
	if err := c.segments(); err != nil {
		return c.result, err
	}
	if err := c.index(); err != nil {
		return c.result, err
	}
	c.system()
	for _, ns := range env.Spaces.Used() {
		for stripe := range keydir.Stripes {
			if err := c.stripe(ns, stripe); err != nil {
				return c.result, err
			}
		}
	}
	return c.result, nil
}

// Miscounted reports whether something is wrong with a collection. Its stripe is locked.
func Miscounted(ctx context.Context, env *Environment, sp *namespace.Space, coll keydir.Collection) (bool, error) {
	c := &checker{Environment: env, ctx: ctx, report: func(_, _ string, _ int64, _, _ string) {}, ended: ctx.Err()}
	c.collection(sp, coll)
	return c.result.Findings > 0, c.ended
}

type checker struct {
	*Environment
	ctx    context.Context
	report func(rule, file string, offset int64, key, detail string)
	result Result
	ended  error // of the context, which has ended the check
	steps  int
}

// goesOn reports whether the check has not ended; it looks now and then, for a single collection may take minutes.
func (c *checker) goesOn() bool {
	if c.steps++; c.steps%checkSteps == 0 && c.ended == nil {
		c.ended = c.ctx.Err()
	}
	return c.ended == nil
}

// checkSteps is how many records a check reads before it looks whether it has been ended.
const checkSteps = 256

func (c *checker) found(rule, file string, offset int64, key, format string, args ...any) {
	if c.ended != nil {
		return // what is not counted to its end looks wrong
	}
	c.result.Findings++
	c.report(rule, file, offset, key, fmt.Sprintf(format, args...))
}

// segments verifies the data files and their hints.
func (c *checker) segments() error {
	known := func(file string, at int64) bool {
		return slices.ContainsFunc(c.Damage, func(d failure.CorruptError) bool { return d.File == file && d.Offset == at })
	}
	check := segment.Check{FS: c.FS, Dir: c.Dir, Ended: c.ctx.Err, Found: c.found, Known: known, Read: c.Read}
	for _, sg := range c.Segments.Load().All() {
		c.result.Segments++
		c.result.Bytes += sg.Size.Load()
		err := check.Segment(sg)
		c.result.Records, c.result.Hints = check.Records, check.Hints
		if err != nil {
			return err
		}
	}
	return nil
}
