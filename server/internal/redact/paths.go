package redact

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Error is the text of an error for clients: of a path there is the last name only. A client need not know where on its
// machine a server keeps its files. dir is the directory of the store, whose name is taken from a text that is not made
// of the errors of package os.
func Error(err error, dir string) string {
	text := err.Error()
	cut := func(path string) {
		if filepath.Base(path) != path && path != "" {
			text = strings.ReplaceAll(text, path, filepath.Base(path))
		}
	}
	eachPath(err, cut)
	if dir != "" && dir != "." {
		text = strings.ReplaceAll(text, filepath.Clean(dir)+string(filepath.Separator), "")
		cut(dir)
	}
	return text
}

// eachPath calls f with the paths that an error and those that it wraps name.
func eachPath(err error, f func(path string)) {
	switch e := err.(type) {
	case *fs.PathError:
		f(e.Path)
	case *os.LinkError:
		f(e.Old)
		f(e.New)
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			eachPath(inner, f)
		}
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			eachPath(inner, f)
		}
	}
}

// IsSystem reports whether an error comes from the system: a file could not be opened, read or written.
func IsSystem(err error) bool {
	var path *fs.PathError
	var link *os.LinkError
	var number syscall.Errno
	return errors.As(err, &path) || errors.As(err, &link) || errors.As(err, &number)
}
