package db

import (
	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/merge"
)

// MergeOptions say what one run of Store.Merge takes: see [merge.RunOptions].
type MergeOptions = merge.RunOptions

// MergeResult is what one run has done: see [merge.Result].
type MergeResult = merge.Result

// MergeStatus is what the background merge is doing: see [merge.Status].
type MergeStatus = merge.Status

// Finding is what Store.Check reports: see [bitcask.Finding].
type Finding = bitcask.Finding

// CheckResult counts what Store.Check has read: see [bitcask.CheckResult].
type CheckResult = bitcask.CheckResult

// The states of a store, in Stats.
const (
	StateOK     = bitcask.StateOK
	StateFull   = bitcask.StateFull
	StateFailed = bitcask.StateFailed
)

// ErrMergeBusy is returned by Store.Merge while another merge runs.
var ErrMergeBusy = bitcask.ErrMergeBusy
