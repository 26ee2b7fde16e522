// Package chanmutex is a mutex whose waiters can give up, and that may be held for seconds.
package chanmutex

import "context"

// Mutex is a mutex for what may be held for seconds, also while its holder
// sleeps, as a throttled merge does. It is a channel because a goroutine that
// waits for a sync.Mutex keeps the clock of testing/synctest from moving on, and
// the sleeper in the same bubble would never wake.
type Mutex chan struct{}

// New returns a mutex that is not held.
func New() Mutex { return make(Mutex, 1) }

// Lock waits until the mutex is free.
func (m Mutex) Lock() { m <- struct{}{} }

// Unlock is for the holder.
func (m Mutex) Unlock() { <-m }

// LockUnless is Lock, unless the context ends before: then it returns the context's error.
func (m Mutex) LockUnless(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case m <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TryLock locks the mutex if it is free, and reports whether it was.
func (m Mutex) TryLock() bool {
	select {
	case m <- struct{}{}:
		return true
	default:
		return false
	}
}
