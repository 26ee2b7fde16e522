package server

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stavedb/stave/server/acl"
	"github.com/stavedb/stave/server/conf"
	"github.com/stavedb/stave/server/internal/redact"
	"github.com/stavedb/stave/server/internal/settings"
)

// Users come from the options: lines of rules, or a file of such lines, which ACL LOAD and ACL SAVE read and write, or
// lines of the file of settings.

// initUsers makes the users that the options describe. The password of the default user comes first, and lines of users
// after it, so that a line "default ..." holds against requirepass. Options.Check and CheckAddress call it for a server
// that has no store: nothing here may need one.
func (v *Server) initUsers() error {
	o := &v.options
	if c := o.Config; c != nil {
		o.RequirePass = orDefault(c.Get("requirepass"), o.RequirePass)
		o.ACLFile = orDefault(c.Get("aclfile"), o.ACLFile)
		o.AllowPlainText = o.AllowPlainText || c.Get("protected-mode") == "no"
	}
	if v.users == nil {
		v.users = acl.New(table)
	}
	if o.ACLFile != "" && len(o.Users) > 0 {
		return errors.New("server: Options.Users and Options.ACLFile exclude each other: put the users into the file")
	}
	if o.RequirePass != "" {
		if err := v.users.SetDefaultPassword(o.RequirePass); err != nil {
			return fmt.Errorf("server: Options.RequirePass: %w", err)
		}
	}
	if err := v.users.Define(o.Users); err != nil {
		return fmt.Errorf("server: Options.Users: %w", err)
	}
	if o.ACLFile != "" {
		if _, err := v.users.LoadFile(o.ACLFile); err != nil {
			return fmt.Errorf("server: %s: %w", o.ACLFile, err)
		}
	}
	if list := v.fileUsers(); len(list) > 0 {
		if _, err := v.setFileUsers(list); err != nil {
			return err
		}
	}
	v.given = v.users.Given()
	v.options.RequirePass = "" // it is known by its hash from here on
	return nil
}

// fileUsers are the lines of users in the file of settings, as it was when it was last read; each knows its line number,
// for errors. There are none without a file.
func (v *Server) fileUsers() []conf.Directive {
	if v.options.Config == nil {
		return nil
	}
	return v.options.Config.inner.Users()
}

// setFileUsers replaces all users by those of lines of the file of settings, or changes nothing. The changes say what
// became of each user, for whoever has to disconnect clients. It hashes passwords that are new, which takes long.
func (v *Server) setFileUsers(list []conf.Directive) ([]acl.Change, error) {
	if len(list) > 0 && (v.options.ACLFile != "" || len(v.options.Users) > 0) {
		return nil, list[0].Errorf("%w", settings.ErrTwoPlaces)
	}
	users := make([][]string, len(list))
	for i := range list {
		users[i] = list[i].Args
	}
	changes, wrong, err := v.users.Replace(users)
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

// judgeUser says what is wrong with a line of a user, before it is one.
func judgeUser(line *conf.Directive) error {
	if err := acl.NewTrial(table).Judge(line.Args); err != nil {
		return userError(line, err)
	}
	return nil
}

// reloadFileUsers is setFileUsers while clients are connected. It is called with the settings locked, so it does not
// log.
func (v *Server) reloadFileUsers(list []conf.Directive) error {
	changes, err := v.setFileUsers(list)
	if err != nil {
		return err
	}
	s := v.NewSession() // nobody's
	defer s.Close()
	for _, change := range changes {
		s.applyChange(change)
	}
	v.given = v.users.Given()
	return nil
}

// rewrittenUsers are the users that CONFIG REWRITE is to write; nil if those of the file are right, or the users are kept
// elsewhere (ACL SAVE writes those). v.reloadMu must be held: it guards v.given.
func (v *Server) rewrittenUsers() [][]string {
	given := v.users.Given()
	if v.options.ACLFile != "" || len(v.options.Users) > 0 || slices.EqualFunc(given, v.given, slices.Equal) {
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
func (v *Server) shownPassword() string {
	if v.users.Default().Rules().AcceptsAnyPassword() {
		return ""
	}
	return redact.Text
}

// setDefaultPassword is requirepass while the server runs; before that initUsers has it. The rules are right ones, so
// there is no error but a bug.
func setDefaultPassword(v *Server, password string) {
	if v.users == nil {
		return
	}
	if err := v.users.SetDefaultPassword(password); err != nil {
		panic("BUG: server: requirepass: " + err.Error())
	}
}
