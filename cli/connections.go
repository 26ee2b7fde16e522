package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// The file of settings of a user has stores and servers by name, and how the interactive shell begins. A line is
// "connection NAME URL-or-DIRECTORY", or "set" and what :set takes; empty lines and those that begin with # are
// skipped. Words are separated by blanks, so a directory with a blank in its name cannot be named here. The file is
// read anew by each command that needs it, and never written.

// userSettings is what the file of settings says. The order of preferences is that of the file: the last of two holds.
type userSettings struct {
	path        string
	connections map[string]string
	preferences []string // what :set is to be given
}

// settingsPath is where the file of settings is; "" if the system has no place for it. $STAVE_CLIENT_CONFIG has
// precedence, and an empty one means that there is no file. It is the XDG directory on every system, as for other
// programs of the command line.
func settingsPath() string {
	if path, is := os.LookupEnv("STAVE_CLIENT_CONFIG"); is {
		return path
	}
	dir := os.Getenv("XDG_CONFIG_HOME")
	if home, err := os.UserHomeDir(); dir == "" && err == nil {
		dir = filepath.Join(home, ".config")
	}
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, "stave", "config")
}

// readSettings reads the file of settings. Without one there are none. Any line that is not understood is an error with
// file and line: a misspelt word must not leave a shell on another store than was meant. Settings that come with an
// error about permissions are complete.
func readSettings() (u userSettings, err error) {
	u = userSettings{path: settingsPath(), connections: map[string]string{}}
	if u.path == "" {
		return u, nil
	}
	text, err := os.ReadFile(u.path)
	if errors.Is(err, fs.ErrNotExist) {
		return u, nil
	}
	if err != nil {
		return u, err
	}
	line, secrets := 0, false
	for raw := range strings.Lines(string(text)) {
		line++
		words := strings.Fields(raw)
		switch {
		case len(words) == 0 || words[0][0] == '#':
		case words[0] == "connection" && len(words) == 3:
			if u.connections[words[1]] != "" {
				return u, fmt.Errorf("%s:%d: there are two connections of the name %q", u.path, line, words[1])
			}
			u.connections[words[1]] = words[2]
			// redis://user:password@host: what stands before the @ has a password after its colon.
			_, server, isURL := strings.Cut(words[2], "://")
			user, _, hasUser := strings.Cut(server, "@")
			secrets = secrets || isURL && hasUser && strings.Contains(user, ":")
		case words[0] == "set" && len(words) > 1:
			u.preferences = append(u.preferences, strings.Join(words[1:], " "))
		default:
			return u, fmt.Errorf("%s:%d: a line is connection NAME URL, connection NAME DIRECTORY, or set and what :set takes", u.path, line)
		}
	}
	if secrets {
		err = onlyForOwner(u.path)
	}
	return u, err
}

// onlyForOwner refuses a file that others may read, where the system says so. It is asked only for a file with a
// password in a URL, as ssh does for keys.
func onlyForOwner(path string) error {
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS == "windows" || info.Mode().Perm()&0o077 == 0 {
		return err
	}
	return fmt.Errorf("%s has a password and may be read by others: chmod 600 %s", path, path)
}

// connectionNamed returns the URL or the directory that the file of settings gives a name. An unknown name is an error
// of usage that lists the others.
func connectionNamed(name string) (string, error) {
	u, err := readSettings()
	if err != nil {
		return "", failed(exitUsage, err)
	}
	if target := u.connections[name]; target != "" {
		return target, nil
	}
	names := make([]string, 0, len(u.connections))
	for known := range u.connections {
		names = append(names, known)
	}
	slices.Sort(names)
	if len(names) == 0 {
		return "", usagef("there is no connection %q: %s has none", name, u.path)
	}
	return "", usagef("there is no connection %q: %s has %s", name, u.path, strings.Join(names, ", "))
}

// begin gives an interactive shell its preferences. A file that cannot be read is a complaint: the shell may be what
// mends it. Scripts do not get here, so what a person likes to see cannot change what a program reads.
func (s *session) begin() {
	u, err := readSettings()
	if err != nil {
		s.Complain(err)
	}
	for _, p := range u.preferences {
		s.setPreference([][]byte{[]byte(p)})
	}
}
