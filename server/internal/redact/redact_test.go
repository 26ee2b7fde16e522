package redact_test

import (
	"strings"
	"testing"

	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/redact"
)

func TestSecretsAreNotShown(t *testing.T) {
	for line, want := range map[string]string{
		"auth pw":                                           "auth *",
		"auth user pw":                                      "auth * *",
		"hello 3":                                           "hello 3",
		"hello 3 AUTH user pw SETNAME n":                    "hello 3 AUTH * * SETNAME n",
		"hello 3 setname auth auth user pw":                 "hello 3 setname auth auth * *",
		"hello 3 auth user":                                 "hello 3 auth *",
		"hello 3 auth auth pw":                              "hello 3 auth * *",
		"config|set maxclients 5":                           "config|set maxclients 5",
		"config|set RequirePass pw timeout 1":               "config|set RequirePass * timeout 1",
		"config|set timeout 1 requirepass pw":               "config|set timeout 1 requirepass *",
		"config|set timeout requirepass pw":                 "config|set timeout requirepass *",
		"config|set requirepass pw timeout":                 "config|set requirepass * *",
		"acl|setuser ada on >pw":                            "acl|setuser * * *",
		"migrate h 1 k 0 5 copy auth pw":                    "migrate h 1 k 0 5 copy auth *",
		"migrate h 1 k 0 5 AUTH2 u pw keys a":               "migrate h 1 k 0 5 AUTH2 * * keys a",
		"migrate h 1 k 0 5 keys auth b":                     "migrate h 1 k 0 5 keys auth b",
		"migrate h 1 k 0 5 auth":                            "migrate h 1 k 0 5 auth",
		"set auth pw":                                       "set auth pw",
		"acl|getuser ada":                                   "acl|getuser *",
		"acl|deluser ada bob":                               "acl|deluser * *",
		"acl|dryrun u AUTH ada pw":                          "acl|dryrun u AUTH * *",
		"acl|dryrun u auth":                                 "acl|dryrun u auth",
		"acl|dryrun u Acl SetUser ada >pw":                  "acl|dryrun u Acl SetUser * *",
		"acl|dryrun u acl":                                  "acl|dryrun u acl",
		"acl|dryrun u get auth":                             "acl|dryrun u get auth",
		"acl|dryrun u hello 3 auth u pw":                    "acl|dryrun u hello 3 auth * *",
		"acl|dryrun u config set requirepass pw":            "acl|dryrun u config set requirepass *",
		"acl|dryrun u command getkeys acl dryrun v auth pw": "acl|dryrun u command getkeys acl dryrun v auth *",
		"command|getkeys migrate h 1 k 0 5 auth pw":         "command|getkeys migrate h 1 k 0 5 auth *",
		"command|getkeysandflags command getkeys migrate h 1 k 0 5 auth2 u pw": "command|getkeysandflags command getkeys migrate h 1 k 0 5 auth2 * *",
		"command|getkeys set k v": "command|getkeys set k v",
		"command|getkeys":         "command|getkeys",
	} {
		words := strings.Fields(line)
		cmd := &command.Command{Name: words[0]}
		words = strings.Fields(strings.Replace(line, "|", " ", 1))
		args := make([][]byte, len(words))
		for i, word := range words {
			args[i] = []byte(word)
		}
		shown := redact.Args(cmd, args)
		texts := make([]string, len(shown))
		for i, arg := range shown {
			texts[i] = strings.ReplaceAll(string(arg), redact.Text, "*")
		}
		if got := strings.Join(texts, " "); got != strings.Replace(want, "|", " ", 1) {
			t.Errorf("%q is shown as %q", line, got)
		}
		for i, word := range words {
			if string(args[i]) != word {
				t.Errorf("%q: argument %d was changed to %q", line, i, args[i])
			}
		}
	}
}
