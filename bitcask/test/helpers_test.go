// The tests of package bitcask that are about a theme, not about one of its sources: faults, full disks, the log.
package bitcask_test

import "github.com/stavedb/stave/internal/test/bitcasktest"

const (
	firstData = bitcasktest.FirstData
	neverIdle = bitcasktest.NeverIdle
)

var (
	open       = bitcasktest.Open
	put        = bitcasktest.Put
	want       = bitcasktest.Want
	wantNone   = bitcasktest.WantNone
	check      = bitcasktest.Check
	snapshot   = bitcasktest.Snapshot
	restore    = bitcasktest.Restore
	inAll      = bitcasktest.InAll
	rewriteAll = bitcasktest.RewriteAll
	frames     = bitcasktest.Frames
)
