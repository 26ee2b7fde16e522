// Package serverside is what a server, and what copies whole stores, needs of package db and a program that embeds a
// store has no use for:
//
//	tx, ok, err := serverside.DB.TryBegin(store, true, nil, "k")
//
// db's own pages show nothing of it, and no other module can reach it.
package serverside

import (
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/serverside/calls"
)

// DB are the functions.
var DB = calls.Of[*db.Store, *db.Tx, db.Keyspace]()

// Commit and Capture are of DB.Capture.
type (
	Commit  = calls.Commit
	Capture = calls.Capture
)

// Change is what DB.OnChangesAndReads reports.
type Change = calls.Change

// Origin is where a replica stands in the stream of its master.
type Origin = calls.Origin

// OrphansDir is the directory of what DB.KeepOrphans keeps.
const OrphansDir = calls.OrphansDir

// IsReplica is the first byte of what DB.SetReplicaOf gets for a replica.
const IsReplica = calls.IsReplica
