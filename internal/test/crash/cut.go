package crash

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// Cut returns the state that remains if the power goes now and the units of the choice are kept. The bytes must not
// be changed.
func (d *Disk) Cut(p Profile, keep Choice) State {
	l := left{dir: d.dir, names: map[*folder]map[string]node{}, bytes: map[*file][]byte{}, state: State{}}
	lost := false // a change of names, in an ordered file system
	for i, u := range d.units {
		switch {
		case !keep.Has(i):
			lost = lost || u.kind == naming && p == Ordered
		case u.kind == naming:
			if !lost {
				apply(l.namesOf(u.in), u.names)
			}
		default:
			b, changed := l.bytes[u.file]
			if !changed {
				b = slices.Clone(u.file.synced)
			}
			l.bytes[u.file] = u.on(b)
		}
	}
	l.walk(d.root, ".")
	return l.state
}

// left is what a cut leaves.
type left struct {
	dir   string
	names map[*folder]map[string]node // where they differ from the synced ones
	bytes map[*file][]byte            // likewise
	state State
}

func (l *left) namesOf(f *folder) map[string]node {
	if l.names[f] == nil {
		l.names[f] = maps.Clone(f.names)
	}
	return l.names[f]
}

// walk adds the content of a directory to the state.
func (l *left) walk(f *folder, path string) {
	names, changed := l.names[f]
	if !changed {
		names = f.names
	}
	for name, n := range names {
		path := filepath.Join(path, name)
		if n.folder != nil {
			l.walk(n.folder, path)
			continue
		}
		b, changed := l.bytes[n.file]
		if !changed {
			b = n.file.synced
		}
		l.state[l.seen(path)] = b
	}
	if len(names) == 0 && path != l.dir {
		l.state[l.seen(path)+"/"] = nil
	}
}

// seen is a path as seen from the store's directory.
func (l *left) seen(path string) string {
	if name, within := strings.CutPrefix(path, l.dir+string(filepath.Separator)); within {
		return name
	}
	return filepath.Join("..", path) // the store's directory is in the root
}
