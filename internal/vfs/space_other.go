//go:build !linux && !darwin && !windows

package vfs

// Space implements [Spacer].
func (o osFS) Space(string) (free int64, ok bool) { return 0, false }
