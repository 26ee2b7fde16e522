package db

import "github.com/stavedb/stave/internal/serverside/calls"

// What servers need of a store and programs that embed one do not: the methods are documented there, and reached from
// there alone.
func init() {
	calls.Register(&calls.DB[*Store, *Tx, Keyspace]{
		TryBegin:              (*Store).tryBegin,
		BeginUnlessLocked:     (*Store).beginUnlessLocked,
		Prefetch:              (*Tx).prefetch,
		WaitedKeys:            (*Store).waitedKeys,
		ServeWaiters:          (*Tx).serveWaiters,
		SetInterrupt:          (*Tx).setInterrupt,
		InterruptibleKeyspace: (*Store).interruptibleKeyspace,
		SetRoom:               (*Tx).setRoom,
		SetRollsBack:          (*Tx).setRollsBack,
		Held:                  (*Tx).held,
		OnChangesAndReads:     (*Store).onChanges,
		SetOrigin:             (*Tx).setOrigin,
		NoteRead:              (*Tx).noteRead,
		PutLibrary:            (*Tx).putLibrary,
		Libraries:             (*Store).libraries,
		LibraryChanges:        (*Store).libraryChanges,
		Capture:               (*Store).startCapture,
		SnapshotAt:            (*Store).snapshotAt,
		NextSequence:          (*Store).nextSequence,
		IsOnDisk:              (*Store).isOnDisk,
		KeepReplication:       (*Store).keepReplication,
		TakeReplication:       (*Store).takeReplication,
		SetExpiryCycle:        (*Store).setExpiryCycle,
		Apply:                 (*Tx).apply,
		PutOrigin:             (*Tx).putOrigin,
		Origin:                (*Store).origin,
		ReplicaOf:             (*Store).replicaOf,
		SetReplicaOf:          (*Store).setReplicaOf,
		HoldWrites:            (*Store).holdWrites,
		SetReplicaAt:          (*Store).setReplicaAt,
		KeepOrigin:            (*Store).keepOrigin,
		BeginLoading:          (*Store).beginLoading,
		Shadow:                (*Tx).shadow,
		Install:               (*Store).install,
		EndLoading:            (*Store).dropLoaded,
		KeepOrphans:           (*Store).keepOrphans,
		Orphans:               (*Store).orphans,
		FlushWith:             (*Store).flushWith,
		SwapWith:              (*Store).swapWith,
		MakeRoom:              (*Store).makeRoom,
		IsOverBound:           (*Store).isOverBound,
		DiskIsShort:           (*Store).diskIsShort,
		Visited:               (*Tx).visited,
	})
}
