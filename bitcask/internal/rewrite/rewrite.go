// Package rewrite does what a merge has decided on: it copies the live records of segments into new ones, swaps the
// sets in the manifest, moves the locations, and removes the old files. Package merge decides which and when.
//
// Readers and writers continue throughout. A record is copied if it is live when it is met, and its
// location moves only if the keydir still points to the original at the end: a put, delete or
// expiry in between has a higher sequence and wins, now and at the next Open.
//
// An output is published as soon as it is full. Then the inputs that lie wholly before its end are
// removed while the next output is begun, of which no more is written than has been freed. So a
// merge of any size needs the space of one more output, or a little more where the sequences of its
// inputs overlap (and that of the segments held by backups: package pins). A half-copied input says the
// same as before; records that stand in two segments have the same sequence in both, and loading
// accepts either.
//
// This file has the copy, output.go how an output begins, and publish.go what follows the copy.
package rewrite

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/stavedb/stave/bitcask/internal/chanmutex"
	"github.com/stavedb/stave/bitcask/internal/commitlog"
	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/bitcask/internal/mergeinput"
	"github.com/stavedb/stave/bitcask/internal/mergeselect"
	"github.com/stavedb/stave/bitcask/internal/pins"
	"github.com/stavedb/stave/bitcask/internal/reserve"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// Environment is what a rewrite needs of the store, which has loaded its index and runs one rewrite at a time.
type Environment struct {
	FS          vfs.FS
	Dir         string
	NoHints     bool
	NoMapping   bool
	SegmentSize func() int64 // from which length an output is sealed
	Log         *commitlog.Log
	ManifestMu  *sync.Mutex // guards Manifest, and changes of Segments
	Manifest    *manifest.Manifest
	Segments    *atomic.Pointer[segment.Set]
	Pins        *pins.Pins
	Reserve     *reserve.Reserve
	SpareID     *uint32 // of a segment that no merge has written after all
	Inputs      *mergeinput.Environment
	Index       *mergeselect.Index

	CheckDirectory func() error
	Stopping       func() bool
	Dead           func(keydir.Loc)  // counts a record as dead
	Grown          func(bytes int64) // counts what an output has taken
}

// Options steer a rewrite: bitcask.RewriteOptions.
type Options struct {
	Throttle func(bytes int) error
	Progress func(bytes int64)
	LiveScan mergeselect.Bounds

	OneOutput bool // see RewriteOptions
}

// Result is what a rewrite did.
type Result struct {
	In, Out           []uint32 // ids of segments removed and written
	BytesIn, BytesOut int64    // of them
	Copied, Dropped   uint64   // records, followers not counted
}

// rewriter carries one rewrite. A selector finds the records to copy, in a goroutine of its own.
type rewriter struct {
	*Environment
	ctx     context.Context
	o       Options
	checkMu chanmutex.Mutex // guards ended and failed, and calls of o's functions
	ended   error           // why the rewrite ends early
	failed  func()          // does again what one of o's functions did: panic, or end the goroutine; nil: none did
	sel     *mergeselect.Selector
	pacer   mergeselect.Pacer // of all but the selector
	clean   uint64            // of the outputs
	out     *segment.Writer
	from    []keydir.Loc            // where each entry of out was; 0 for tombstones
	moves   mergeinput.Batch        // entries of out
	long    mergeinput.RecordReader // for long records
	records []format.Record         // of the entry being copied
	result  Result

	freed     chan int64 // lengths of files that are being removed, each when it is gone; nil: none are
	room      int64      // the sum of those that have gone
	removeErr error      // once freed is closed
}

// maxMoves is how many entries an output takes at most: 32 MiB are needed to remember where so many were.
const maxMoves = 4 << 20

// Run copies the live records of the given sealed segments and removes the segments. failed, if not nil, does again
// what a function of the options has done: panic, or end the goroutine.
func Run(ctx context.Context, env *Environment, ids []uint32, o Options) (r Result, failed func(), err error) {
	rw := &rewriter{Environment: env, ctx: ctx, o: o, checkMu: chanmutex.New()}
	rw.pacer.CheckIn = rw.checkIn
	if err := rw.choose(ids); err != nil {
		return Result{}, nil, err
	}
	err = rw.run()
	if rw.out != nil {
		err = errors.Join(err, rw.abandon())
	}
	err = failure.NameNoSpace(errors.Join(err, rw.removed(math.MaxInt64), rw.sel.In.Close()))
	env.Reserve.Freed(len(rw.result.In) > 0)
	return rw.result, rw.failed, err
}

// choose finds the inputs, and below which sequence a tombstone has nothing left to hide outside of them. What the
// selector finds live from now on was live at the sequence that it notes, or is newer: see segment.Segment.Clean. For
// what a commit removes leaves the index before the commit is in the log, but for system records: these change after it.
func (rw *rewriter) choose(ids []uint32) error {
	rw.Index.System.Writing.Lock()
	rw.clean = rw.Log.Stats().Sequence
	rw.Index.System.Writing.Unlock()
	in, outside, err := rw.Log.Split(ids)
	if err == nil {
		rw.sel = mergeselect.New(rw.Index, rw.Inputs, in, outside, rw.o.LiveScan, mergeselect.Pacer{CheckIn: rw.checkIn})
	}
	return err
}

// run copies every live record, in order of sequence, so that outputs are
// ordered like any segment.
func (rw *rewriter) run() error {
	var selecting sync.WaitGroup
	selecting.Go(rw.sel.Run)
	err := rw.copySelected()
	if err != nil {
		rw.end(err)
	}
	close(rw.sel.Stop)
	selecting.Wait()
	if err == nil {
		err = rw.sel.Err
	}
	if err != nil {
		return err
	}
	return rw.publish(math.MaxUint64)
}

func (rw *rewriter) copySelected() error {
	for sw := range rw.sel.Selected {
		rw.result.Dropped += sw.Dropped
		raw := sw.Records
		for i := range sw.Entries {
			x := &sw.Entries[i]
			if !x.Keep {
				rw.result.Dropped++
				continue
			}
			var records []format.Record
			var err error
			if x.Long() {
				records, err = rw.readLong(sw, x)
			} else {
				records, err = rw.parse(raw[:x.Size])
				raw = raw[x.Size:]
			}
			if err == nil {
				err = rw.copy(x, records)
			}
			if err != nil {
				return err
			}
		}
		rw.sel.Free <- sw
	}
	return nil
}

// readLong reads a record that the selector has left.
func (rw *rewriter) readLong(sw *mergeinput.Batch, x *mergeinput.BatchEntry) ([]format.Record, error) {
	if sg := rw.sel.In.All[x.From].Segment; rw.long.Sg != sg {
		buf := rw.long.Buf[:0]
		rw.long = mergeinput.NewRecordReader(rw.Manifest.Seed, sg, rw.pacer.Spend)
		rw.long.Buf = buf
	}
	_, records, err := rw.long.Verified(sw, x)
	return records, rw.sel.In.All[x.From].Blame(err)
}

// parse splits an entry, which the selector has verified, into its records.
func (rw *rewriter) parse(raw []byte) ([]format.Record, error) {
	rw.records = rw.records[:0]
	for len(raw) > 0 {
		rec, err := format.ParseRecord(raw)
		if err != nil {
			return nil, err
		}
		rw.records = append(rw.records, rec)
		raw = raw[rec.Size:]
	}
	return rw.records, nil
}

// copy writes one entry, with the records that follow it, to the output.
func (rw *rewriter) copy(x *mergeinput.BatchEntry, records []format.Record) error {
	in := rw.sel.In.All[x.From]
	if rw.out != nil && (rw.out.Full(int(x.Size)) || len(rw.from) == maxMoves) {
		if rw.o.OneOutput && len(rw.sel.In.All) > 1 {
			return errSecondOutput
		}
		if err := rw.publish(x.Seq); err != nil {
			return err
		}
	}
	if rw.out == nil {
		if err := rw.startOutput(x.Seq); err != nil {
			return err
		}
	}
	at, err := rw.out.Begin(int(x.Size), x.Seq)
	if err != nil {
		return err
	}
	for i := range records {
		rw.out.Add(&records[i], x.Seq+uint64(i))
	}
	rw.out.From(in.Segment.Footer)
	from := in.Loc(x)
	if x.Kind.Tombstone() {
		from = 0
		rw.out.Segment.Hiding.Bytes += int64(x.Size)
		rw.out.Segment.Hiding.Last = x.Seq
	}
	rw.from = append(rw.from, from)
	rw.result.Copied++
	rw.Grown(int64(x.Size))
	if err := rw.out.Note(&records[0], x.Seq, at); err != nil {
		return err
	}
	return rw.pacer.Spend(int(x.Size))
}

// errSecondOutput ends a rewrite that is to have one output and would begin another.
var errSecondOutput = fmt.Errorf("%w: what is to be copied is longer than a segment", failure.ErrNoSpace)

// checkIn reports, throttles, and notices cancellation. What ends one goroutine of
// a rewrite ends the other when it looks.
func (rw *rewriter) checkIn(spent int, passed int64) error {
	rw.checkMu.Lock()
	defer rw.checkMu.Unlock()
	if rw.ended == nil {
		if err := rw.consult(spent, passed); err != nil {
			rw.ended = mergeinput.NewStopped(err)
		}
	}
	return rw.ended
}

// end ends both goroutines, when they look.
func (rw *rewriter) end(err error) {
	rw.checkMu.Lock()
	defer rw.checkMu.Unlock()
	if rw.ended == nil {
		rw.ended = mergeinput.NewStopped(err)
	}
}

// errCallback is why a rewrite ends of which a callback has panicked, or has ended
// its goroutine.
var errCallback = errors.New("a callback of the merge has panicked, or has ended its goroutine")

// consult asks the caller's functions and the store whether the rewrite is to continue. A user's
// function may panic, or end its goroutine, and this goroutine may be in the middle of moving
// locations: so the function gets a goroutine of its own, and Rewrite ends in the same way after
// its clean-up.
func (rw *rewriter) consult(spent int, passed int64) error {
	err := errCallback
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		defer func() {
			switch p := recover(); {
			case p != nil:
				rw.failed = func() { panic(p) }
			case err == errCallback:
				rw.failed = runtime.Goexit
			}
		}()
		err = rw.ask(spent, passed)
	}()
	<-asked
	return err
}

func (rw *rewriter) ask(spent int, passed int64) error {
	if rw.Stopping() {
		return failure.ErrClosed
	}
	if err := rw.ctx.Err(); err != nil {
		return err
	}
	if rw.o.Progress != nil && passed > 0 {
		rw.o.Progress(passed)
	}
	if rw.o.Throttle != nil {
		return rw.o.Throttle(spent)
	}
	return nil
}
