package acl

import (
	"time"

	"github.com/stavedb/stave/server/command"
	"golang.org/x/crypto/bcrypt"
)

// NewCheap is New with passwords that are quickly hashed.
func NewCheap(t *command.Table) *Users { return newUsers(t, bcrypt.MinCost) }

// Backoff counts failures by address.
type Backoff struct{ backoff }

func (b *Backoff) Admit(address string, now time.Time) bool { return b.admit(address, now) }
func (b *Backoff) Fail(address string, now time.Time)       { b.fail(address, now) }
func (b *Backoff) Kept() int                                { return len(b.addresses) }

var BackoffAddress = backoffAddress
