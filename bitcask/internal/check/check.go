// Package check finds everything about a store that is not as the format promises, and changes nothing: [Run] reads all
// of it. What the rules of its findings are, says bitcask.Store.Check.
package check

import (
	"context"
	"fmt"
	"slices"
	"sync"
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
	Read     func(bytes int64)      // told of bytes that have been dealt with, by several goroutines at once
	Workers  int                    // how many parts are checked at once
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

// Run checks a store. The error is about a check that could not be made, not about its findings. Segments and stripes are
// checked by several workers at once; report is called by the caller's goroutine, with the findings of one after the other.
func Run(ctx context.Context, env *Environment, report func(rule, file string, offset int64, key, detail string)) (r Result, err error) {
	for _, d := range env.Damage {
		r.Findings++
		report("I2", d.File, d.Offset, "", d.Reason)
	}
	parts := partsOf(env)
	var workers sync.WaitGroup
	defer workers.Wait()
	ended := make(chan struct{})
	defer close(ended)
	var begun atomic.Int64 // parts, in order: what waits to be reported waits for parts that are begun
	for range env.Workers {
		workers.Go(func() {
			for n := begun.Add(1) - 1; n < int64(len(parts)); n = begun.Add(1) - 1 {
				select {
				case <-ended:
					return
				default:
					parts[n].run(ctx, env, ended)
				}
			}
		})
	}
	for _, p := range parts {
		for f := range p.found {
			report(f.rule, f.file, f.offset, f.key, f.detail)
		}
		r.add(&p.result)
		if p.err != nil {
			return r, p.err
		}
	}
	return r, nil
}

// part is what one worker checks at a time.
type part struct {
	check  func(*checker) error
	found  chan finding // few: a worker waits for its turn to report more. Closed when the rest is set.
	result Result
	err    error
}

type finding struct {
	rule, file  string
	offset      int64
	key, detail string
}

// partsOf returns the segments, the INDEX, the records of the store, and the stripes.
func partsOf(env *Environment) (parts []*part) {
	const fewFindings = 16
	add := func(check func(*checker) error) {
		parts = append(parts, &part{check: check, found: make(chan finding, fewFindings)})
	}
	for _, sg := range env.Segments.Load().All() {
		add(func(c *checker) error { return c.segment(sg) })
	}
	add((*checker).index)
	add((*checker).system)
	spaces := env.Spaces.Used()
	for stripe := range keydir.Stripes {
		add(func(c *checker) error {
			for _, ns := range spaces {
				if err := c.stripe(ns, stripe); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return parts
}

// run checks a part. What it finds once the check has ended is not reported.
func (p *part) run(ctx context.Context, env *Environment, ended <-chan struct{}) {
	defer close(p.found)
	c := &checker{Environment: env, ctx: ctx, report: func(rule, file string, offset int64, key, detail string) {
		select {
		case p.found <- finding{rule, file, offset, key, detail}:
		case <-ended:
		}
	}}
	p.err = p.check(c)
	p.result = c.result
}

// add adds what a part has checked.
func (r *Result) add(of *Result) {
	r.Segments += of.Segments
	r.Bytes += of.Bytes
	r.Records += of.Records
	r.Hints += of.Hints
	r.Index = r.Index || of.Index
	r.Compared = r.Compared || of.Compared
	r.Keys += of.Keys
	r.Findings += of.Findings
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

// segment verifies a data file and its hint.
func (c *checker) segment(sg *segment.Segment) error {
	known := func(file string, at int64) bool {
		return slices.ContainsFunc(c.Damage, func(d failure.CorruptError) bool { return d.File == file && d.Offset == at })
	}
	check := segment.Check{FS: c.FS, Dir: c.Dir, Ended: c.ctx.Err, Found: c.found, Known: known, Read: c.Read}
	err := check.Segment(sg)
	c.result.Segments, c.result.Bytes, c.result.Records, c.result.Hints = 1, sg.Size.Load(), check.Records, check.Hints
	return err
}
