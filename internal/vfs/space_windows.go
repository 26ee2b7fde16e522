package vfs

import (
	"math"

	"golang.org/x/sys/windows"
)

// Space implements [Spacer].
func (o osFS) Space(dir string) (free int64, ok bool) {
	at, err := o.at("stat", dir)
	if err == nil && at.dir != nil {
		dir = at.dir.path
	}
	name, nameErr := windows.UTF16PtrFromString(dir)
	if err != nil || nameErr != nil {
		return 0, false
	}
	var left uint64
	if windows.GetDiskFreeSpaceEx(name, &left, nil, nil) != nil {
		return 0, false
	}
	return int64(min(left, math.MaxInt64)), true
}
