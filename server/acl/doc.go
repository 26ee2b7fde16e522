// Package acl is who may do what: users, their passwords, and the commands, keys and channels that each may use.
//
// # What it is
//
// [Users] is the list of users of one server. A [User] keeps its identity for as long as it exists; what it may do is a
// [Rules], which never changes: ACL SETUSER makes another and puts it in place at once, so a session needs no lock to
// ask [Rules.Check]. The words that make rules (rules.go), the texts that describe them (describe.go), the file
// (file.go), the command ACL (command.go) and the order of the checks (check.go) are those of Redis 7; rules of
// commands are described as Redis 7.2 does, in the order in which they were given.
//
// # Passwords
//
// A password is kept as bcrypt of its SHA-256 (password.go): salted, and slow to guess. Redis keeps the SHA-256 itself,
// and its rule #<sha256> is accepted and hashed further. [Users.Authenticate] refuses an address that keeps failing
// (backoff.go), and computes one slow hash at a time for the whole server. A password that has been verified once is
// recognized by a keyed hash from then on, in RAM only, so clients that reconnect do not pay again.
//
// # Concurrency
//
// All methods of Users, User and Log are safe for concurrent use.
package acl
