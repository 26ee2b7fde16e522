package redact

import (
	"bytes"
	"slices"
	"strings"

	"github.com/stavedb/stave/server/command"
)

// Text stands for an argument that is not shown.
const Text = "(redacted)"

// Secrets says by a command's name which of a request's arguments, by their indexes, are not shown. Nothing has been
// checked of a request within another one: it may be too short, and wrong in any way.
var Secrets = map[string]func(args [][]byte) []int{
	"auth":        func(args [][]byte) []int { return indexes(1, len(args)) },
	"acl|setuser": allOfUser,
	"acl|getuser": allOfUser,
	"acl|deluser": allOfUser,
	"hello":       helloSecrets,
	"config|set":  configSecrets,
	"migrate":     migrateSecrets,
}

// Nested are the commands that have another request among their arguments, and where that begins.
var Nested = map[string]int{
	"acl|dryrun":              3,
	"command|getkeys":         2,
	"command|getkeysandflags": 2,
}

// allOfUser are a user and its rules: as in Redis 7.2 the name too.
func allOfUser(args [][]byte) []int { return indexes(2, len(args)) }

// Settings are the settings whose values are passwords.
var Settings = []string{
	"requirepass", "masterauth", "masteruser", "tls-key-file-pass", "tls-client-key-file-pass", "user",
}

// indexes are the integers from first to before the end.
func indexes(first, end int) (list []int) {
	for i := first; i < end; i++ {
		list = append(list, i)
	}
	return list
}

// helloSecrets are the names and passwords of HELLO's AUTH, also of a HELLO that fails. After the word everything is
// hidden if there is less than a name and a password.
func helloSecrets(args [][]byte) (list []int) {
	for i := 2; i < len(args); i++ {
		switch {
		case bytes.EqualFold(args[i], []byte("auth")):
			list = append(list, indexes(i+1, min(i+3, len(args)))...)
			i += 2
		case bytes.EqualFold(args[i], []byte("setname")):
			i++ // a name may be any word
		}
	}
	return list
}

// configSecrets are the values of secret settings. A request whose names and values do not come in pairs is hidden from
// the first such name on.
func configSecrets(args [][]byte) (list []int) {
	for i := 2; i < len(args); i++ {
		if slices.Contains(Settings, strings.ToLower(string(args[i]))) {
			if len(args)%2 != 0 {
				return append(list, indexes(i+1, len(args))...)
			}
			if i%2 == 0 {
				list = append(list, i+1)
			}
		}
	}
	return list
}

// migrateSecrets are the password after AUTH, and the name and password after AUTH2.
func migrateSecrets(args [][]byte) (list []int) {
	for i := 6; i < len(args); i++ {
		switch {
		case bytes.EqualFold(args[i], []byte("auth")):
			list = append(list, indexes(i+1, min(i+2, len(args)))...)
			i++
		case bytes.EqualFold(args[i], []byte("auth2")):
			list = append(list, indexes(i+1, min(i+3, len(args)))...)
			i += 2
		case bytes.EqualFold(args[i], []byte("keys")):
			return list // nothing but keys follows
		}
	}
	return list
}

// Args is what may be shown of a request. The arguments themselves are not changed.
func Args(cmd *command.Command, args [][]byte) [][]byte {
	name, from := cmd.Name, 0
	for inner := Nested[name]; inner > 0 && from+inner < len(args); inner = Nested[name] {
		from += inner
		name = nameOf(args[from:])
	}
	secrets := Secrets[name]
	if secrets == nil {
		return args
	}
	shown := slices.Clone(args)
	for _, i := range secrets(args[from:]) {
		shown[from+i] = []byte(Text)
	}
	return shown
}

// nameOf is the name of the command of a request within another one, if this package knows it.
func nameOf(args [][]byte) string {
	name := lower(args[0])
	if len(args) > 1 && Secrets[name] == nil {
		name += "|" + lower(args[1])
	}
	return name
}

// lower is a word in lower case, of which no more is looked at than a name has.
func lower(word []byte) string { return strings.ToLower(string(word[:min(len(word), 32)])) }
