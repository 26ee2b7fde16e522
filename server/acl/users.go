package acl

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/stavedb/stave/server/command"
)

// DefaultName is the user that a connection has before it authenticates, and that AUTH with a password alone means.
const DefaultName = "default"

// User is one user. Sessions keep a pointer to it; what it may do can change at any time.
type User struct {
	name    string
	rules   atomic.Pointer[Rules]
	limited atomic.Bool // the rules do not allow everything
}

// Name returns the user's name.
func (u *User) Name() string { return u.name }

// Rules returns what the user may do now.
func (u *User) Rules() *Rules { return u.rules.Load() }

// IsLimited reports whether there is anything that the user may not do. It is the question that each command asks.
func (u *User) IsLimited() bool { return u.limited.Load() }

// put puts rules in place. Whoever sees the old flag with the new rules asks once too often at most, for the flag is
// taken away last and set first.
func (u *User) put(r *Rules) {
	if !r.isUnlimited() {
		u.limited.Store(true)
	}
	u.rules.Store(r)
	u.limited.Store(!r.isUnlimited())
}

// Users are the users of a server.
type Users struct {
	table     *command.Table
	passwords *passwords
	backoff   backoff
	opening   atomic.Pointer[Rules]            // of the default user, unless a file that is loaded has others
	fallback  *User                            // the default user, which is always there
	byName    atomic.Pointer[map[string]*User] // the map does not change: it is replaced
	edit      sync.Mutex                       // held by those who replace it or put rules in place
	file      sync.Mutex                       // held while a file of users is written
}

// New returns users with the default user alone, who needs no password and may do everything.
func New(t *command.Table) *Users { return newUsers(t, bcryptCost) }

// NewTrial is New for users who are only to be looked at: whether rules are right, and what they allow. Its hashes of
// passwords are weak, and quick.
func NewTrial(t *command.Table) *Users { return newUsers(t, bcrypt.MinCost) }

func newUsers(t *command.Table, cost int) *Users {
	u := &Users{table: t, passwords: newPasswords(cost), fallback: &User{name: DefaultName}}
	u.opening.Store(u.openRules())
	u.fallback.put(u.opening.Load())
	u.byName.Store(&map[string]*User{DefaultName: u.fallback})
	return u
}

// openRules are those of the default user when nothing else is said.
func (u *Users) openRules() *Rules {
	s := newSelector(u.table)
	s.setAllCommands(true)
	s.allKeys, s.allChannels = true, true
	return &Rules{on: true, noPassword: true, selectors: []*selector{s}}
}

// Judge says what is wrong with a user that is given by its words, a name and its rules; nil if nothing is.
func (u *Users) Judge(words []string) error {
	u.edit.Lock()
	defer u.edit.Unlock()
	_, _, err := u.parseWords(words)
	return err
}

// Default returns the default user.
func (u *Users) Default() *User { return u.fallback }

// Get returns a user, nil if there is none of that name.
func (u *Users) Get(name string) *User { return (*u.byName.Load())[name] }

// Names returns the names of all users, sorted.
func (u *Users) Names() []string { return slices.Sorted(maps.Keys(*u.byName.Load())) }

// ErrUserName is returned for a name that could not be read from a file again.
var ErrUserName error = ruleText("Usernames can't contain spaces or null characters")

// Change is what ACL SETUSER, or a file that was loaded, has done to a user: its rules before and after.
type Change struct {
	User          *User
	Before, After *Rules // Before is nil for a new user, After for one that is gone
}

// Set applies rules to a user, which it makes if need be. If one of them is wrong nothing is changed. It may take long:
// passwords are hashed.
func (u *Users) Set(name string, rules []string) (Change, error) {
	return u.SetUntil(name, rules, nil)
}

// SetUntil is Set that asks now and then whether to go on.
func (u *Users) SetUntil(name string, rules []string, interrupted func() error) (Change, error) {
	if hasBlank(name) || name == "" {
		return Change{}, ErrUserName
	}
	u.edit.Lock()
	defer u.edit.Unlock()
	var change Change
	if user := u.Get(name); user != nil {
		change.Before = user.Rules()
	}
	b := newBuilder(u.table, u.passwords, change.Before)
	b.interrupted = interrupted
	if err := b.applyAll(rules); err != nil {
		return Change{}, err
	}
	change.After = &b.rules
	change.User = u.placeLocked(name, change.After)
	return change, nil
}

// placeLocked puts rules in place, of a new user if need be.
func (u *Users) placeLocked(name string, rules *Rules) *User {
	if user := u.Get(name); user != nil {
		user.put(rules)
		return user
	}
	all := maps.Clone(*u.byName.Load())
	user := &User{name: name}
	user.put(rules)
	all[name] = user
	u.byName.Store(&all)
	return user
}

// SetDefaultPassword is requirepass: the default user has this password alone, or needs none if it is empty.
func (u *Users) SetDefaultPassword(password string) error {
	rules := []string{"resetpass", ">" + password}
	if password == "" {
		rules = []string{"nopass"}
	}
	change, err := u.Set(DefaultName, rules)
	if err == nil {
		u.opening.Store(change.After)
	}
	return err
}

// Delete removes users, and returns what has changed: nothing for names that there are not. The default user stays.
func (u *Users) Delete(names []string) (changes []Change) {
	u.edit.Lock()
	defer u.edit.Unlock()
	all := maps.Clone(*u.byName.Load())
	for _, name := range names {
		if user := all[name]; user != nil && user != u.fallback {
			delete(all, name)
			changes = append(changes, Change{User: user})
		}
	}
	u.byName.Store(&all)
	return changes
}

// ErrWrongPassword is the answer to an unknown user, one that is off, and a wrong password alike.
var ErrWrongPassword = errors.New("invalid username-password pair or user is disabled")

// Authenticate returns the user of that name if the password is right. remote is the address of the client. It may take
// long, so no lock may be held.
func (u *Users) Authenticate(ctx context.Context, name, password, remote string) (*User, error) {
	address := backoffAddress(remote)
	if !u.backoff.admit(address, time.Now()) {
		return nil, ErrTooManyFailures
	}
	user := u.Get(name)
	var list []*secret
	if user != nil && user.Rules().on {
		rules := user.Rules()
		if rules.noPassword {
			return user, nil
		}
		list = rules.passwords
	}
	right, err := u.passwords.check(ctx, list, password)
	switch {
	case err != nil:
		return nil, err
	case !right:
		u.backoff.fail(address, time.Now())
		return nil, ErrWrongPassword
	}
	return user, nil
}
