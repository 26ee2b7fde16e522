package acl

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stavedb/stave/server/command"
)

// Rules are what one user may do, and with which passwords. They do not change.
type Rules struct {
	on         bool
	noPassword bool
	sanitize   string // the last of these words; it is shown only, for payloads of RESTORE are always verified
	passwords  []*secret
	selectors  []*selector // the first is the user's own, the others stand in parentheses
}

const (
	sanitizePayload     = "sanitize-payload"
	skipSanitizePayload = "skip-sanitize-payload"
)

// On reports whether one may authenticate as the user.
func (r *Rules) On() bool { return r.on }

// NeedsPassword reports whether a connection has to authenticate to become the user.
func (r *Rules) NeedsPassword() bool { return !r.on || !r.noPassword }

// AcceptsAnyPassword reports whether the user has no password.
func (r *Rules) AcceptsAnyPassword() bool { return r.noPassword }

// isUnlimited says whether the rules allow everything.
func (r *Rules) isUnlimited() bool { return slices.ContainsFunc(r.selectors, (*selector).isUnlimited) }

// ruleText is what is wrong with a rule, in Redis's words.
type ruleText string

func (e ruleText) Error() string { return string(e) }

const (
	errUnknownCommand ruleText = "Unknown command or category name in ACL"
	errRuleSyntax     ruleText = "Syntax error"
	errAfterAllKeys   ruleText = "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any effect. Try 'resetkeys' to start with an empty list of patterns"
	errAfterAll       ruleText = "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any effect. Try 'resetchannels' to start with an empty list of channels"
	errHashSyntax     ruleText = "The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters"
	errNoSuchPassword ruleText = "The password you are trying to remove from the user does not exist"
	errFirstArg       ruleText = "Allowing first-arg of a subcommand is not supported"
)

// errManyPasswords is ours: Redis has no such limit.
var errManyPasswords = fmt.Errorf("a user has at most %d passwords", maxPasswords)

// RuleError is a rule that cannot be applied.
type RuleError struct {
	Rule string // a password in it is not shown
	Err  error
}

func (e *RuleError) Error() string {
	return fmt.Sprintf("Error in ACL SETUSER modifier '%s': %v", e.Rule, e.Err)
}
func (e *RuleError) Unwrap() error { return e.Err }

// builder makes Rules of older ones, a rule at a time.
type builder struct {
	table     *command.Table
	passwords *passwords
	known     []*secret // passwords of the user before the file was read again
	rules     Rules

	interrupted func() error // asked before each rule, which may take as long as its place in the list; nil: it is not asked
}

// errInterrupted ends a list of rules that nobody waits for any more.
var errInterrupted = errors.New("interrupted")

// goesOn returns the error with which the list is to end.
func (b *builder) goesOn() error {
	if b.interrupted == nil {
		return nil
	}
	if err := b.interrupted(); err != nil {
		return fmt.Errorf("%w: %w", errInterrupted, err)
	}
	return nil
}

// newBuilder starts with a copy of rules; nil stands for those of a new user, which may do nothing.
func newBuilder(t *command.Table, p *passwords, old *Rules) *builder {
	b := &builder{table: t, passwords: p}
	if old == nil {
		b.rules.selectors = []*selector{newSelector(t)}
		return b
	}
	b.rules = *old
	b.rules.passwords = slices.Clone(old.passwords)
	b.rules.selectors = make([]*selector, len(old.selectors))
	for i, s := range old.selectors {
		b.rules.selectors[i] = s.clone()
	}
	return b
}

// applyAll applies rules in order, after it has put those in parentheses together that blanks have separated. The first
// that is wrong ends it.
func (b *builder) applyAll(rules []string) error {
	merged, err := mergeSelectors(rules)
	if err != nil {
		return err
	}
	for _, rule := range merged {
		if err := b.goesOn(); err != nil {
			return err
		}
		if err := b.apply(rule); errors.Is(err, errInterrupted) {
			return err
		} else if err != nil {
			return &RuleError{Rule: shownRule(rule), Err: err}
		}
	}
	return nil
}

// shownRule is what an error repeats of a rule.
func shownRule(rule string) string {
	if strings.HasPrefix(rule, ">") || strings.HasPrefix(rule, "<") {
		return rule[:1] + "(redacted)"
	}
	return rule
}

// UnmatchedError is a parenthesis without its other half.
type UnmatchedError struct{ From string }

func (e *UnmatchedError) Error() string {
	return fmt.Sprintf("Unmatched parenthesis in acl selector starting at '%s'.", e.From)
}

// mergeSelectors joins the words from one that starts with a parenthesis to one that ends with one.
func mergeSelectors(words []string) (rules []string, err error) {
	open := -1 // index of the word that opened a selector
	var selector []string
	for i, word := range words {
		switch {
		case open < 0 && strings.HasPrefix(word, "("):
			open, selector = i, []string{word}
		case open >= 0:
			selector = append(selector, word)
		default:
			rules = append(rules, word)
			continue
		}
		if strings.HasSuffix(word, ")") {
			rules = append(rules, strings.Join(selector, " "))
			open = -1
		}
	}
	if open >= 0 {
		return nil, &UnmatchedError{From: words[open]}
	}
	return rules, nil
}

// apply applies one rule. An empty one does nothing.
func (b *builder) apply(rule string) error {
	r := &b.rules
	if rule == "" {
		return nil
	}
	switch strings.ToLower(rule) {
	case "on":
		r.on = true
	case "off":
		r.on = false
	case "nopass":
		r.noPassword, r.passwords = true, nil
	case "resetpass":
		r.noPassword, r.passwords = false, nil
	case sanitizePayload, skipSanitizePayload:
		r.sanitize = strings.ToLower(rule)
	case "clearselectors":
		r.selectors = r.selectors[:1]
	case "reset":
		*r = Rules{sanitize: sanitizePayload, selectors: []*selector{newSelector(b.table)}}
	default:
		switch {
		case rule[0] == '>', rule[0] == '#':
			return b.addPassword(rule)
		case rule[0] == '<', rule[0] == '!':
			return b.removePassword(rule)
		case rule[0] == '(' && rule[len(rule)-1] == ')':
			return b.addSelector(rule[1 : len(rule)-1])
		}
		return r.selectors[0].apply(b.table, rule)
	}
	return nil
}

// addSelector adds what stands in parentheses.
func (b *builder) addSelector(rules string) error {
	s := newSelector(b.table)
	for _, rule := range strings.Split(rules, " ") {
		if rule == "" {
			continue
		}
		if err := b.goesOn(); err != nil {
			return err
		}
		if strings.HasSuffix(rule, ")") {
			return errRuleSyntax // such as a pattern, which a file could not hold: it would end the selector
		}
		if err := s.apply(b.table, rule); err != nil {
			return err
		}
	}
	b.rules.selectors = append(b.rules.selectors, s)
	return nil
}

// addPassword is >password and #hash. A password that the user has is not added again.
func (b *builder) addPassword(rule string) error {
	secret, err := b.passwords.ofRule(rule)
	if err != nil {
		return err
	}
	if b.passwords.find(b.rules.passwords, rule) >= 0 {
		b.rules.noPassword = false
		return nil
	}
	if len(b.rules.passwords) == maxPasswords {
		return errManyPasswords
	}
	b.rules.noPassword = false
	if i := b.passwords.find(b.known, rule); i >= 0 {
		b.rules.passwords = append(b.rules.passwords, b.known[i])
	} else {
		b.rules.passwords = append(b.rules.passwords, secret())
	}
	return nil
}

// removePassword is <password and !hash.
func (b *builder) removePassword(rule string) error {
	if _, err := b.passwords.ofRule(rule); err != nil {
		return err
	}
	i := b.passwords.find(b.rules.passwords, rule)
	if i < 0 {
		return errNoSuchPassword
	}
	b.rules.passwords = slices.Delete(b.rules.passwords, i, i+1)
	return nil
}

// apply applies one rule of commands, keys or channels.
func (s *selector) apply(t *command.Table, rule string) error {
	switch strings.ToLower(rule) {
	case "allkeys", "~*":
		s.allKeys, s.keys = true, nil
	case "resetkeys":
		s.allKeys, s.keys = false, nil
	case "allchannels", "&*":
		s.allChannels, s.channels = true, nil
	case "resetchannels":
		s.allChannels, s.channels = false, nil
	case "allcommands", "+@all":
		s.setAllCommands(true)
	case "nocommands", "-@all":
		s.setAllCommands(false)
	default:
		switch rule[0] {
		case '~', '%':
			return s.applyKeys(rule)
		case '&':
			return s.applyChannels(rule[1:])
		case '+', '-':
			return s.applyCommand(t, rule[1:], rule[0] == '+')
		}
		return errRuleSyntax
	}
	return nil
}

// applyKeys is ~pattern and %R~pattern.
func (s *selector) applyKeys(rule string) error {
	if s.allKeys {
		return errAfterAllKeys
	}
	p := keyPattern{pattern: rule[1:], access: read | write}
	if rule[0] == '%' {
		letters, pattern, _ := strings.Cut(rule[1:], "~") // without it the pattern is empty, as in Redis
		p = keyPattern{pattern: pattern}
		for _, letter := range strings.ToUpper(letters) {
			bit := map[rune]access{'R': read, 'W': write}[letter]
			if bit == 0 || p.access&bit != 0 {
				return errRuleSyntax
			}
			p.access |= bit
		}
		if p.access == 0 {
			return errRuleSyntax
		}
	}
	if hasBlank(p.pattern) {
		return errRuleSyntax
	}
	s.addKeys(p)
	return nil
}

// applyChannels is &pattern.
func (s *selector) applyChannels(pattern string) error {
	if s.allChannels {
		return errAfterAll
	}
	if hasBlank(pattern) {
		return errRuleSyntax
	}
	s.addChannels(pattern)
	return nil
}

// applyCommand is +name, -name, +@category, -@category, +name|subcommand and +name|argument.
func (s *selector) applyCommand(t *command.Table, name string, in bool) error {
	if category, is := strings.CutPrefix(name, "@"); is {
		list, ok := InCategory(t, category)
		if !ok {
			return errUnknownCommand
		}
		for _, c := range list {
			s.setCommand(c, in)
		}
		s.noteCommandRule(name, in)
		return nil
	}
	if bar := strings.LastIndexByte(name, '|'); bar >= 0 && in {
		container := lookup(t, name[:bar])
		switch {
		case container == nil:
			return errUnknownCommand
		case container.Container != nil:
			return errFirstArg
		case bar == len(name)-1:
			return errRuleSyntax
		case len(container.Subcommands) == 0:
			if hasBlank(name) {
				return errRuleSyntax // the rule could not be read from a file again
			}
			s.allowFirstArg(container, name[bar+1:])
			s.noteCommandRule(name, in)
			return nil
		}
	}
	c := lookup(t, name)
	if c == nil {
		return errUnknownCommand
	}
	s.setCommand(c, in)
	s.noteCommandRule(name, in)
	return nil
}

// lookup finds a command or a subcommand.
func lookup(t *command.Table, name string) *command.Command {
	if strings.Count(name, "|") > 1 {
		return nil
	}
	return t.Lookup(name)
}

// hasBlank says whether text has a byte that would end it in a file of rules.
func hasBlank(text string) bool { return strings.ContainsAny(text, " \t\n\v\f\r\x00") }
