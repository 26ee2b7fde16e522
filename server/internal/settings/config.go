package settings

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/stavedb/stave/server/conf"
)

// Config are the values of the settings, each with the place that it comes from.
type Config struct {
	// JudgeUser says what is wrong with a line "user NAME RULE ...", nil if nothing is. It is set before the first file is
	// read, and must be safe for concurrent use.
	JudgeUser func(*conf.Directive) error

	mu     sync.Mutex // guards all below
	path   string     // of the file; "" without one
	files  []string   // the file and those that it includes
	values map[string]setting
	inFile map[string]string // what the file said when it was last read
	users  []conf.Directive  // the lines of users that it had then
}

// setting is a value that is not just the default.
type setting struct {
	value string
	from  origin
}

// origin is where a value comes from; the higher one holds.
type origin uint8

const (
	fromFile origin = iota + 1
	fromEnvironment
	fromFlag
	FromClient
)

// New returns settings that are all at their defaults.
func New() *Config {
	return &Config{values: map[string]setting{}, inFile: map[string]string{}, JudgeUser: func(*conf.Directive) error { return nil }}
}

// File is the path of the file that Load has read, or "".
func (c *Config) File() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.path
}

// Get returns the value of a setting that is in the table, as CONFIG GET shows it.
func (c *Config) Get(name string) string {
	value, _ := c.Lookup(Table[name])
	return value
}

// IsSet reports whether a setting has been set, were it to its default.
func (c *Config) IsSet(name string) bool {
	_, set := c.Lookup(Table[name])
	return set
}

// Lookup returns a value, and whether it was set.
func (c *Config) Lookup(d *Directive) (value string, set bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s, ok := c.values[d.Name]; ok {
		return s.value, true
	}
	return d.def, false
}

// Store sets a checked value, unless one of a higher origin holds.
func (c *Config) Store(d *Directive, value string, from origin) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.values[d.Name].from <= from {
		c.values[d.Name] = setting{value, from}
	}
}

// Keep is for a value of Changed that could not be made so: the setting keeps the one that holds, and the next reload
// tries again.
func (c *Config) Keep(d *Directive, holds string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.values[d.Name] = setting{holds, fromFile}
	c.inFile[d.Name] = holds
}

// Set sets a value as a flag of the command line does.
func (c *Config) Set(name, value string) error {
	d, err := find(name)
	if err != nil {
		return err
	}
	canonical, err := d.checked(value, d.def)
	if err == nil {
		c.Store(d, canonical, fromFlag)
	}
	return err
}

// checked returns a value as it is kept, or why it cannot be.
func (d *Directive) checked(value, before string) (string, error) {
	canonical, err := d.canonical(value, before)
	if err == nil && d.Mode == Fixed && canonical != d.def {
		return "", d.refusal()
	}
	return canonical, err
}

// canonical returns a value as CONFIG GET would show it.
func (d *Directive) canonical(value, before string) (string, error) {
	canonical, err := d.Kind.Check(value, before)
	if err != nil {
		return "", fmt.Errorf("%s: %w, not %q", d.Name, err, ShownValue(d, value))
	}
	return canonical, nil
}

// refusal says that a fixed directive has another value.
func (d *Directive) refusal() error {
	return fmt.Errorf("%s can only be %q: %s", d.Name, d.def, d.Refusal)
}

// ShownValue is what an error repeats of a value: no secret, and not much.
func ShownValue(d *Directive, value string) string {
	if strings.Contains(d.Name, "pass") || d.Name == "masterauth" {
		return "(redacted)"
	}
	if len(value) > 100 {
		return value[:100] + "..."
	}
	return value
}

// find returns the directive of that name, or an error that names the nearest one.
func find(name string) (*Directive, error) {
	if d := Table[strings.ToLower(name)]; d != nil {
		return d, nil
	}
	if why := unsupported[strings.ToLower(name)]; why != "" {
		return nil, fmt.Errorf("%q is not supported: %s", name, why)
	}
	if near := nearest(strings.ToLower(name), Names); near != "" {
		return nil, fmt.Errorf("unknown directive %q: did you mean %q?", name, near)
	}
	return nil, fmt.Errorf("unknown directive %q", name)
}

// unsupported are directives of Redis's files that no CONFIG GET shows. Each would change what clients may do,
// so none is skipped.
var unsupported = map[string]string{
	"rename-command": "commands have fixed names. Take commands away from users instead: a line such as `user default on >PASSWORD ~* &* +@all -config -flushall`, " +
		"and users of their own, with +@all, for those who need them",
	"loadmodule": "there are no modules; leave the line out, and the commands of the module are unknown",
}

// Load reads a file and what it includes. All directives are checked; the error has a line for each that is wrong, with
// file and line number, and then nothing has changed. A warning is about directives that have no effect here, or
// a password in a file that others may read.
func (c *Config) Load(path string) (warnings []string, err error) {
	if path, err = filepath.Abs(path); err != nil { // the working directory may change
		return nil, err
	}
	said, err := c.read(path)
	if err != nil {
		return nil, err
	}
	for name, value := range said.values {
		c.Store(Table[name], value, fromFile)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.path, c.files, c.inFile, c.users = path, said.files, said.values, said.users
	return said.warnings, nil
}

// Environment takes settings from variables such as STAVE_MAXCLIENTS for maxclients. A variable with that
// prefix that is none of a setting is an error, but for those that the program reads itself. The error names all that
// are wrong.
func (c *Config) Environment(environ []string) (warnings []string, err error) {
	for _, pair := range environ {
		variable, value, _ := strings.Cut(pair, "=")
		rest, ours := strings.CutPrefix(variable, "STAVE_")
		if !ours || value == "" || slices.Contains(otherVariables, variable) || strings.HasPrefix(rest, "TEST_") {
			continue
		}
		name := strings.ToLower(rest)
		if Table[name] == nil {
			name = strings.ReplaceAll(name, "_", "-")
		}
		d, wrong := find(name)
		canonical := ""
		if wrong == nil {
			canonical, wrong = d.checked(value, d.def)
		}
		if wrong != nil {
			err = errors.Join(err, fmt.Errorf("$%s: %w", variable, wrong))
			continue
		}
		c.Store(d, canonical, fromEnvironment)
		if d.Mode == kept && canonical != d.def {
			warnings = append(warnings, fmt.Sprintf("$%s has no effect: %s", variable, strings.TrimSuffix(d.meaning, ".")))
		}
	}
	return warnings, err
}

// otherVariables are variables of the program that are no settings of a server.
var otherVariables = []string{"STAVE_CONFIG", "STAVE_PASSWORD", "STAVE_CLIENT_CONFIG", "STAVE_HISTFILE", "STAVE_PAGER"}

// nearest is the name that is most like a misspelt one, or "" if none is much like it.
func nearest(name string, names []string) string {
	best, least := "", max(len(name)/3+1, 3)
	for _, other := range names {
		if d := editDistance(name, other, least); d < least {
			best, least = other, d
		}
	}
	return best
}

// editDistance is how many letters must be put in, left out or exchanged to make one name of the other; at
// least limit if there are as many.
func editDistance(a, b string, limit int) int {
	if max(len(a), len(b))-min(len(a), len(b)) >= limit || len(a) > 64 {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := before
			if a[i] != b[j] {
				cost++
			}
			before = row[j+1]
			row[j+1] = min(cost, row[j]+1, before+1)
		}
	}
	return row[len(b)]
}

// ErrNoConfigFile refuses CONFIG REWRITE without a file.
var ErrNoConfigFile = errors.New("the server is running without a config file")

// Rewrite writes the settings that the file does not have right into it. Comments, the order of lines, and what
// included files have right stay. users are the lines of users, each a name and its rules; nil leaves those of the file
// as they are.
func (c *Config) Rewrite(users [][]string) error {
	path := c.File()
	if path == "" {
		return ErrNoConfigFile
	}
	now, err := c.read(path)
	if err != nil {
		return err // it has become unreadable: nothing is overwritten
	}
	file, err := conf.Read(path)
	if err != nil {
		return err
	}
	before := file.String()
	for _, name := range Names {
		d := Table[name]
		if name != d.Name || d.Mode == Fixed {
			continue
		}
		value := c.Get(name)
		said, isSaid := now.values[name]
		if !isSaid {
			said = d.def
		}
		if said != value {
			file.Set(d.Names(), d.lines(value))
		}
	}
	if users != nil {
		for i := range now.users {
			if line := &now.users[i]; line.File != path {
				return line.Errorf("the users have changed, and a file that is included is not rewritten: move its lines of users")
			}
		}
		file.Set([]string{"user"}, users)
	}
	if file.String() == before {
		return nil
	}
	if err := file.Write(); err != nil {
		return err
	}
	if now, err = c.read(path); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.files, c.inFile, c.users = now.files, now.values, now.users
	return nil
}

// Users are the lines of users in the file, as they were when it was last read.
func (c *Config) Users() []conf.Directive {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.users)
}

// sameUsers says whether two files have the same users.
func sameUsers(a, b []conf.Directive) bool {
	return slices.EqualFunc(a, b, func(a, b conf.Directive) bool { return slices.Equal(a.Args, b.Args) })
}

// Changed reads the file again and returns what it says otherwise than before: the new values, or the default for what
// it no longer has. Nothing is returned that the environment, a flag or CONFIG SET overrides; the latter only holds
// against a line that stays. If the lines of users are others than before, it calls setUsers with them; if that fails
// nothing has changed.
func (c *Config) Changed(setUsers func([]conf.Directive) error) (values map[string]string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.path == "" {
		return nil, nil
	}
	now, err := c.read(c.path)
	if err != nil {
		return nil, err
	}
	if !sameUsers(now.users, c.users) {
		if err := setUsers(now.users); err != nil {
			return nil, err
		}
	}
	values = map[string]string{}
	for _, d := range Table {
		value, said := now.values[d.Name]
		before, wasSaid := c.inFile[d.Name]
		if said == wasSaid && value == before {
			continue
		}
		if from := c.values[d.Name].from; from == fromEnvironment || from == fromFlag {
			continue
		}
		if !said {
			value = d.def
		}
		values[d.Name] = value
	}
	c.files, c.inFile, c.users = now.files, now.values, now.users
	for name, value := range values {
		c.values[name] = setting{value, fromFile}
	}
	return values, nil
}

// Watched are the files to watch.
func (c *Config) Watched() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.files)
}
