package failure

import (
	"errors"

	"golang.org/x/sys/windows"
)

// diskFull knows the system's own errors for a full disk.
func diskFull(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL)
}
