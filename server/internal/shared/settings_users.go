package shared

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stavedb/stave/server/acl"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/conf"
	"github.com/stavedb/stave/server/internal/redact"
	"github.com/stavedb/stave/server/internal/settings"
)

// UserSource is where the users of a server come from. Options.Check and CheckAddress load them for a server that has no
// store: nothing here may need one.
type UserSource struct {
	Users   *acl.Users
	ACLFile string           // Options.ACLFile
	Lines   []string         // Options.Users
	File    *settings.Config // the file of settings

	given [][]string // the users as the file of settings has them, by Users.Given; Live.mu guards it while the server runs
}

// Load makes the users that the options describe. The password of the default user comes first, and lines of users after
// it, so that a line "default ..." holds against requirepass.
func (u *UserSource) Load(requirePass string) error {
	if u.ACLFile != "" && len(u.Lines) > 0 {
		return errors.New("server: Options.Users and Options.ACLFile exclude each other: put the users into the file")
	}
	if requirePass != "" {
		if err := u.Users.SetDefaultPassword(requirePass); err != nil {
			return fmt.Errorf("server: Options.RequirePass: %w", err)
		}
	}
	if err := u.Users.Define(u.Lines); err != nil {
		return fmt.Errorf("server: Options.Users: %w", err)
	}
	if u.ACLFile != "" {
		if _, err := u.Users.LoadFile(u.ACLFile); err != nil {
			return fmt.Errorf("server: %s: %w", u.ACLFile, err)
		}
	}
	if list := u.fileLines(); len(list) > 0 {
		if _, err := u.replace(list); err != nil {
			return err
		}
	}
	u.given = u.Users.Given()
	return nil
}

// fileLines are the lines of users in the file of settings, as it was when it was last read; each knows its line number,
// for errors. There are none without a file.
func (u *UserSource) fileLines() []conf.Directive {
	if u.File == nil {
		return nil
	}
	return u.File.Users()
}

// replace replaces all users by those of lines of the file of settings, or changes nothing. The changes say what became
// of each user, for whoever has to disconnect clients. It hashes passwords that are new, which takes long.
func (u *UserSource) replace(list []conf.Directive) ([]acl.Change, error) {
	if len(list) > 0 && (u.ACLFile != "" || len(u.Lines) > 0) {
		return nil, list[0].Errorf("%w", settings.ErrTwoPlaces)
	}
	users := make([][]string, len(list))
	for i := range list {
		users[i] = list[i].Args
	}
	changes, wrong, err := u.Users.Replace(users)
	if err != nil {
		return nil, userError(&list[wrong], err)
	}
	return changes, nil
}

// userError says what is wrong with a line of a user.
func userError(line *conf.Directive, err error) error {
	var rule *acl.RuleError
	if errors.As(err, &rule) && strings.IndexByte("#!", rule.Rule[0]) >= 0 { // perhaps a password that somebody took for a hash
		err = &acl.RuleError{Rule: rule.Rule[:1] + redact.Text, Err: rule.Err}
	}
	return line.Errorf("user: %w", err)
}

// JudgeUser returns what says what is wrong with a line of a user, before it is one.
func JudgeUser(table *command.Table) func(line *conf.Directive) error {
	return func(line *conf.Directive) error {
		if err := acl.NewTrial(table).Judge(line.Args); err != nil {
			return userError(line, err)
		}
		return nil
	}
}

// reload is replace while clients are connected. It is called with the settings locked, so it does not log.
func (u *UserSource) reload(v *State, list []conf.Directive) error {
	changes, err := u.replace(list)
	if err != nil {
		return err
	}
	v.EndLost(changes, nil)
	u.given = u.Users.Given()
	return nil
}

// rewritten are the users that CONFIG REWRITE is to write; nil if those of the file are right, or the users are kept
// elsewhere (ACL SAVE writes those). Live.mu must be held.
func (u *UserSource) rewritten() [][]string {
	given := u.Users.Given()
	if u.ACLFile != "" || len(u.Lines) > 0 || slices.EqualFunc(given, u.given, slices.Equal) {
		return nil
	}
	return given
}

// protectedMode is the word for it.
func protectedMode(allowPlainText bool) string {
	if allowPlainText {
		return "no"
	}
	return "yes"
}

// shownPassword is what CONFIG GET shows of requirepass: never the password, which is known by its hash only. Redis shows
// it; a tool that only asks whether there is one gets the same answer.
func (v *Settings) shownPassword() string {
	if v.State.Users.Default().Rules().AcceptsAnyPassword() {
		return ""
	}
	return redact.Text
}

// setDefaultPassword is requirepass while the server runs; before that UserSource.Load has it. The rules are right ones, so
// there is no error but a bug.
func setDefaultPassword(v *Settings, password string) {
	if v.State.Users == nil {
		return
	}
	if err := v.State.Users.SetDefaultPassword(password); err != nil {
		panic("BUG: server: requirepass: " + err.Error())
	}
}
