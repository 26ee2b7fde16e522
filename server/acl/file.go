package acl

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// maxFileBytes is how many bytes of a file of users are read.
const maxFileBytes = 16 << 20

// fileError is a file of users that cannot be read. Its text has the path, which no client is told.
type fileError struct{ err error }

func (e *fileError) Error() string { return e.err.Error() }
func (e *fileError) Unwrap() error { return e.err }

// A file of users has a line "user NAME RULE ..." for each. Blank lines and lines that start with # are skipped. It has
// hashes of passwords, so only its owner may read what is written here.

// Load replaces all users by those of a file's text. A user who is not in it is removed; the default user, if it is
// not, may do everything, with the password that SetDefaultPassword has set, or without one. If a line is wrong nothing
// is changed, and the error names all that are.
func (u *Users) Load(text string) ([]Change, error) {
	u.edit.Lock()
	defer u.edit.Unlock()
	rules, err := u.parseFile(text)
	if err != nil {
		return nil, err
	}
	return u.replace(rules), nil
}

// Replace is Load of users that are given by their words: a name, and its rules. The error says which one is wrong, and
// why.
func (u *Users) Replace(users [][]string) (changes []Change, wrong int, err error) {
	u.edit.Lock()
	defer u.edit.Unlock()
	all := make(map[string]*Rules)
	for i, words := range users {
		name, rules, err := u.parseWords(words)
		if err == nil && all[name] != nil {
			err = fmt.Errorf("duplicate user '%s' found", name)
		}
		if err != nil {
			return nil, i, err
		}
		all[name] = rules
	}
	return u.replace(all), 0, nil
}

// replace puts users in the place of all others.
func (u *Users) replace(rules map[string]*Rules) []Change {
	if rules[DefaultName] == nil {
		rules[DefaultName] = u.opening.Load()
	}
	before := *u.byName.Load()
	all := make(map[string]*User, len(rules))
	var changes []Change
	for name, after := range rules {
		user := before[name]
		change := Change{User: user, After: after}
		if user != nil {
			change.Before = user.Rules()
		} else {
			user = &User{name: name}
			change.User = user
		}
		all[name] = user
		changes = append(changes, change)
	}
	for name, user := range before {
		if all[name] == nil {
			changes = append(changes, Change{User: user, Before: user.Rules()})
		}
	}
	for _, c := range changes {
		if c.After != nil {
			c.User.put(c.After)
		}
	}
	u.byName.Store(&all)
	return changes
}

// Define sets users by lines "NAME RULE ...", as they stand after the word user in a configuration. A user is defined
// from nothing, the default user too. The first line that is wrong ends it.
func (u *Users) Define(lines []string) error {
	seen := make(map[string]bool)
	for _, line := range lines {
		name, rules, err := u.parseLine("user " + line)
		if err == nil && seen[name] {
			err = fmt.Errorf("duplicate user '%s' found", name)
		}
		if err != nil {
			return err
		}
		seen[name] = true
		u.edit.Lock()
		u.placeLocked(name, rules)
		u.edit.Unlock()
	}
	return nil
}

// parseFile makes rules of the lines. A password that a user has already keeps what is known of it, so that clients who
// reconnect after a reload do not have to wait for each other.
func (u *Users) parseFile(text string) (map[string]*Rules, error) {
	all := make(map[string]*Rules)
	var wrong []error
	for i, line := range strings.Split(text, "\n") {
		line = strings.Trim(line, " \t\r")
		if line == "" || line[0] == '#' {
			continue
		}
		name, rules, err := u.parseLine(line)
		if err == nil && all[name] != nil {
			err = fmt.Errorf("duplicate user '%s' found", name)
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("line %d: %w", i+1, err))
			continue
		}
		all[name] = rules
	}
	return all, errors.Join(wrong...)
}

// parseLine makes rules of one line.
func (u *Users) parseLine(line string) (name string, rules *Rules, err error) {
	words := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' })
	if len(words) < 2 || words[0] != "user" {
		return "", nil, errors.New("it should start with the word user, followed by a name")
	}
	return u.parseWords(words[1:])
}

// parseWords makes rules of a name and what follows it.
func (u *Users) parseWords(words []string) (name string, rules *Rules, err error) {
	if name = words[0]; hasBlank(name) || name == "" {
		return "", nil, ErrUserName
	}
	b := newBuilder(u.table, u.passwords, nil)
	if old := u.Get(name); old != nil {
		b.known = old.Rules().passwords
	}
	if err := b.applyAll(words[1:]); err != nil {
		return "", nil, err
	}
	return name, &b.rules, nil
}

// Text returns the file of all users, which Load reads.
func (u *Users) Text() string {
	var b strings.Builder
	for _, line := range u.Lines() {
		b.WriteString(line)
		b.WriteByte('\n')
	}
	return b.String()
}

// Given returns the words of each user, as Replace takes them, but of the default user only if its rules are others
// than the password that SetDefaultPassword has set.
func (u *Users) Given() [][]string {
	users := [][]string{} // none is not nil
	for _, line := range u.Lines() {
		if words := strings.Fields(line)[1:]; words[0] != DefaultName || !u.isOpen(u.Default().Rules()) {
			users = append(users, words)
		}
	}
	return users
}

// isOpen says whether rules allow everything, with the password of SetDefaultPassword, or without one.
func (u *Users) isOpen(rules *Rules) bool {
	if rules != u.opening.Load() {
		return false
	}
	bare := *rules
	bare.passwords, bare.noPassword = nil, true
	return bare.String() == u.openRules().String()
}

// Lines returns a line for each user, as ACL LIST has them.
func (u *Users) Lines() []string {
	all := *u.byName.Load()
	lines := make([]string, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		lines = append(lines, "user "+name+" "+all[name].Rules().String())
	}
	return lines
}

// LoadFile is Load of the text of a file.
func (u *Users) LoadFile(path string) ([]Change, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, &fileError{err}
	}
	defer f.Close() // nothing was written
	text, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, &fileError{err}
	}
	if len(text) > maxFileBytes {
		return nil, fmt.Errorf("it has more than %d bytes", maxFileBytes)
	}
	return u.Load(string(text))
}

// SaveFile replaces a file by one with the users as they are. After a crash there is either.
func (u *Users) SaveFile(path string) (err error) {
	u.file.Lock()
	defer u.file.Unlock()
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()                                                 // nothing was written through it
	f, err := os.CreateTemp(dir.Name(), "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.WriteString(u.Text())
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if runtime.GOOS == "windows" { // where a directory cannot be synced
		return nil
	}
	return dir.Sync()
}
