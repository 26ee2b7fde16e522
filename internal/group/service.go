package group

import "context"

// Service keeps the Record of a group. The moment at which each call takes effect lies within the call, for all nodes alike:
// that is, calls are linearizable. They may come from several goroutines.
type Service interface {
	// Read returns the record; Version 0 if there is none.
	Read(ctx context.Context) (Versioned, error)
	// Swap replaces the record if it still has the version s.If (0: if there is none), and returns the one that is there then.
	// After an error it may be carried out at any later time. One that would begin a group with slots of another one gets a *SlotsTakenError.
	Swap(ctx context.Context, s Swap) (Versioned, error)
	// Watch calls fn for the record as it is and after each change, in their order, until ctx ends. Some that others have
	// followed may be left out. What does not answer is tried again.
	Watch(ctx context.Context, fn func(Versioned))
}

// Others is a Service that knows the other groups of the cluster, too.
type Others interface {
	// WatchOthers calls fn with their records by name, as they are and after each change, until ctx ends. The map is fn's.
	WatchOthers(ctx context.Context, fn func(map[string]Record))
}
