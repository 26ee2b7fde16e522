//go:build !unix

package cli

// withPrivateFiles runs fn: there is no mask of permissions. The socket's file has the permissions of its directory.
func withPrivateFiles(fn func() error) error { return fn() }
