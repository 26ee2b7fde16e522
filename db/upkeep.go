package db

import (
	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/merge"
)

// The types of Store.Merge and Store.Check under names of this package, for callers that need nothing else of the log.
type (
	MergeOptions = merge.RunOptions
	MergeResult  = merge.Result
	MergeStatus  = merge.Status
	Finding      = bitcask.Finding
	CheckResult  = bitcask.CheckResult
)

// The states of a store, in Stats.
const (
	StateOK     = bitcask.StateOK
	StateFull   = bitcask.StateFull
	StateFailed = bitcask.StateFailed
)

// ErrMergeBusy is returned by Store.Merge while another merge runs.
var ErrMergeBusy = bitcask.ErrMergeBusy
