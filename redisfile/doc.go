// Package redisfile reads and writes the files of a Redis: what is in an RDB file becomes keys of a store and libraries
// of functions, and these become an RDB file that a Redis loads, or the commands of an AOF. To run the commands of an
// AOF takes a session of package server, as stave import has.
//
// [ImportRDB] takes files of the versions 1 to 12 (Redis 7.4, Valkey 8) with every encoding that they may have, and
// later ones as far as they hold nothing new. Databases become the namespaces of the same numbers; deadlines of keys
// and of the fields of hashes stay as they are. What a store cannot hold is left out and counted by its name: values
// and records of modules. How long a key was idle, and how often it was used, is not kept.
//
// [ExportRDB] writes version 9 by default, which Redis 5 and every later one loads, or version 10 if there are
// libraries, which came with Redis 7; and plain encodings, which every Redis turns into those it prefers.
//
// # Guarantees
//
// A key of the file replaces whatever the store had under its name, and each key is stored whole or, if the import
// fails within it, not at all. A file is not trusted: whatever it says, an import ends with an error that names the
// byte, and holds at most a few MiB, and twice the length of a string that is compressed.
//
// # Caveats
//
// The checksum of a file stands at its end. When it turns out to be wrong the keys are stored.
//
// An import commits up to a thousand keys at a time. A value of more than 4 MiB takes several commits; an import that
// is killed in between leaves a part of it, without its deadline, until the file is imported again.
//
// This package is separate from db so that a program that only embeds a store does not link it.
package redisfile
