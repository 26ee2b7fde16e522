package group

import "context"

// Service keeps the Record of a group. The moment at which each call takes effect lies within the call, for all nodes alike:
// that is, calls are linearizable. They may come from several goroutines.
type Service interface {
	// Read returns the record; Version 0 if there is none.
	Read(ctx context.Context) (Versioned, error)
	// Swap replaces the record if it still has the version s.If (0: if there is none), and returns the one that is there then.
	// After an error it may be carried out at any later time.
	Swap(ctx context.Context, s Swap) (Versioned, error)
	// Watch calls fn for the record as it is and after each change, in their order, until ctx ends. Some that others have
	// followed may be left out. What does not answer is tried again.
	Watch(ctx context.Context, fn func(Versioned))
}
