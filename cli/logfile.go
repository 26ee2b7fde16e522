package cli

import (
	"errors"
	"os"
	"sync"
)

// logFile is the file that the setting logfile names. It is opened again when it is no longer what its path leads to:
// whoever rotates logs renames it, as with Redis, and the next line makes a new one. (Copying and truncating works, too.)
// While the new one cannot be opened the lines go to the old one.
type logFile struct {
	path string

	mu   sync.Mutex // guards file, and that one line is written at a time
	file *os.File
}

// openLogFile opens the file, which is for its owner alone: addresses and names of clients are in it.
func openLogFile(path string) (*logFile, error) {
	file, err := openLog(path)
	if err != nil {
		return nil, err
	}
	return &logFile{path: path, file: file}, nil
}

func openLog(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
}

// Write writes one line.
func (l *logFile) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isRenamed() {
		if file, err := openLog(l.path); err == nil {
			_ = l.file.Close() // nothing of it waits to be written
			l.file = file
		}
	}
	return l.file.Write(line)
}

// isRenamed reports whether the path leads to another file, or to none.
func (l *logFile) isRenamed() bool {
	there, err := os.Stat(l.path)
	if err != nil {
		return errors.Is(err, os.ErrNotExist)
	}
	open, err := l.file.Stat()
	return err == nil && !os.SameFile(open, there)
}

// Close closes the file.
func (l *logFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Close()
}
