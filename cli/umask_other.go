//go:build !unix

package cli

// withPrivateFiles runs fn: there is no mask of permissions. The permissions of the directory are those of the socket.
func withPrivateFiles(fn func() error) error { return fn() }
