package acl

import (
	"slices"
	"strings"

	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/structures"
)

// Verdict is why a request is refused. The order is that of importance: of several selectors the one that got farthest
// decides.
type Verdict int

// The verdicts.
const (
	Allowed Verdict = iota
	DeniedCommand
	DeniedKey
	DeniedAuth // never of a request: a failed authentication, in Log
	DeniedChannel
)

// Denial is a request that is not allowed.
type Denial struct {
	Verdict Verdict
	// Object is the name of the command, the key or the channel that the user may not use.
	Object string
}

// Error is what Redis replies to a request that is refused, without the code.
func (d Denial) Error() string {
	switch d.Verdict {
	case DeniedKey:
		return "this user has no permissions to access one of the keys used as arguments"
	case DeniedChannel:
		return "this user has no permissions to access one of the channels used as arguments"
	}
	return "this user has no permissions to run the '" + d.Object + "' command"
}

// Verbose is the reply of ACL DRYRUN, which names the object as far as its first NUL.
func (d Denial) Verbose() string {
	object, _, _ := strings.Cut(d.Object, "\x00")
	switch d.Verdict {
	case DeniedKey:
		return "This user has no permissions to access the '" + object + "' key"
	case DeniedChannel:
		return "This user has no permissions to access the '" + object + "' channel"
	}
	return "This user has no permissions to run the '" + object + "' command"
}

// Check says whether a request is allowed. Its arity has been checked. The keys of the arguments are looked for only if
// a selector allows the command and not all keys.
func (r *Rules) Check(c *command.Command, args [][]byte) (d Denial) {
	d.Verdict = DeniedCommand
	d.Object = c.Name
	farthest := 0
	var keys []command.KeyUse
	for _, s := range r.selectors {
		verdict, at := s.check(c, args, &keys)
		if verdict == Allowed {
			return Denial{}
		}
		if verdict > d.Verdict || verdict == d.Verdict && at > farthest {
			d.Verdict, farthest = verdict, at
			if verdict != DeniedCommand {
				d.Object = string(args[at])
			}
		}
	}
	return d
}

// check is Check for one selector. at is the index of the argument that is refused. keys are found once for all
// selectors.
func (s *selector) check(c *command.Command, args [][]byte, keys *[]command.KeyUse) (v Verdict, at int) {
	if !s.allCommands && c.Flags&command.NoAuth == 0 && !s.commands.has(c) && !s.hasFirstArg(c, args) {
		return DeniedCommand, 0
	}
	if !s.allKeys && len(c.Keys) > 0 {
		if *keys == nil {
			*keys = c.AppendKeyUses(nil, args)
		}
		for _, k := range *keys {
			if !s.allowsKey(args[k.Arg], k.Use) {
				return DeniedKey, k.Arg
			}
		}
	}
	if !s.allChannels {
		first, last, isPattern := c.ChannelArgs(len(args))
		for i := first; i <= last; i++ {
			if !allowsChannel(s.channels, string(args[i]), isPattern) {
				return DeniedChannel, i
			}
		}
	}
	return Allowed, 0
}

// hasFirstArg reports whether the command is allowed with its first argument.
func (s *selector) hasFirstArg(c *command.Command, args [][]byte) bool {
	list := s.firstArgs[c.Index]
	return len(args) > 1 && slices.ContainsFunc(list, func(arg string) bool { return strings.EqualFold(arg, string(args[1])) })
}

// allowsKey reports whether a pattern matches a key and allows what the command does with it.
func (s *selector) allowsKey(key []byte, use string) bool {
	needs := accessOf(use)
	for _, p := range s.keys {
		if p.access&needs == needs && matches(p.pattern, key) {
			return true
		}
	}
	return false
}

// accessOf is what a key's use needs, by the words of COMMAND INFO. A command that looks at a key's existence or type
// alone needs no access but that a pattern matches, as in Redis.
func accessOf(use string) (needs access) {
	for word := range strings.FieldsSeq(use) {
		switch word {
		case "access":
			needs |= read
		case "insert", "update", "delete":
			needs |= write
		}
	}
	return needs
}

// allowsChannel reports whether one may use a channel. One may subscribe to a pattern only if the rules have it
// literally.
func allowsChannel(channels []string, name string, isPattern bool) bool {
	if isPattern {
		return slices.Contains(channels, name)
	}
	return slices.ContainsFunc(channels, func(p string) bool { return matches(p, []byte(name)) })
}

// matches says whether a pattern matches a name. As in Redis * does not match the empty name: that takes the empty
// pattern, or allkeys and allchannels.
func matches(pattern string, name []byte) bool {
	return len(name) == 0 && pattern == "" || len(name) > 0 && structures.Match(pattern, name)
}

// MayReadAllKeys reports whether a request may read any key: SORT reads those that its patterns name.
func (r *Rules) MayReadAllKeys(c *command.Command, args [][]byte) bool {
	return slices.ContainsFunc(r.selectors, func(s *selector) bool {
		readsAll := func(p keyPattern) bool { return p.pattern == "*" && p.access&read != 0 }
		if !s.allKeys && !slices.ContainsFunc(s.keys, readsAll) {
			return false
		}
		var keys []command.KeyUse
		verdict, _ := s.check(c, args, &keys)
		return verdict == Allowed
	})
}

// LostChannels returns a function that says whether a subscription is no longer allowed after a change of rules, nil if
// none can be lost. The channels of all selectors count together.
func LostChannels(before, after *Rules) (lost func(channel string, isPattern bool) bool) {
	var channels []string
	for _, s := range after.selectors {
		if s.allChannels {
			return nil
		}
		channels = append(channels, s.channels...)
	}
	listed := make(map[string]bool, len(channels))
	for _, p := range channels {
		listed[p] = true
	}
	kept := true
	for _, s := range before.selectors {
		kept = kept && !s.allChannels && !slices.ContainsFunc(s.channels, func(p string) bool { return !listed[p] })
	}
	if kept {
		return nil
	}
	return func(channel string, isPattern bool) bool { return !allowsChannel(channels, channel, isPattern) }
}
