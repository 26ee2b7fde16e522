// Package chanmutex is a mutex whose waiters can give up, and that may be held for seconds.
package chanmutex

import (
	"context"
)

// Mutex is a mutex for what may be held for seconds, also while its holder
// sleeps, as a throttled merge does. It is a channel because a goroutine that
// waits for a sync.Mutex keeps the clock of testing/synctest from moving on, and
// the sleeper in the same bubble would never wake.
type Mutex chan struct{}

// New returns a mutex that is not held.
func New() Mutex { return make(Mutex, 1) }

// Lock waits until the mutex is free.
func (t Mutex) Lock() { t <- struct{}{} }

// Unlock is for the holder.
func (t Mutex) Unlock() { <-t }

// LockUnless is Lock, unless the context ends before: then it returns the context's error.
func (t Mutex) LockUnless(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TryLock reports whether it has taken the turn, without waiting for it.
func (t Mutex) TryLock() bool {
	select {
	case t <- struct{}{}:
		return true
	default:
		return false
	}
}
