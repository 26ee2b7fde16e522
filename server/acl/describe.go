package acl

import "strings"

// What ACL LIST and ACL GETUSER show can be given to ACL SETUSER again, and makes the same rules.

// Description is a user's rules as ACL GETUSER shows them.
type Description struct {
	Flags     []string
	Passwords []string // hashes
	SelectorDescription
	Selectors []SelectorDescription // those in parentheses
}

// SelectorDescription are the rules of one selector.
type SelectorDescription struct{ Commands, Keys, Channels string }

// Describe returns the rules for ACL GETUSER.
func (r *Rules) Describe() Description {
	d := Description{Flags: r.flags(), SelectorDescription: r.selectors[0].describe()}
	for _, p := range r.passwords {
		d.Passwords = append(d.Passwords, p.hash)
	}
	for _, s := range r.selectors[1:] {
		d.Selectors = append(d.Selectors, s.describe())
	}
	return d
}

// flags are the words that concern the user and not a selector.
func (r *Rules) flags() []string {
	flags := []string{"off"}
	if r.on {
		flags[0] = "on"
	}
	if r.noPassword {
		flags = append(flags, "nopass")
	}
	if r.sanitize != "" {
		flags = append(flags, r.sanitize)
	}
	return flags
}

// String returns the rules for ACL LIST, in one line.
func (r *Rules) String() string {
	words := r.flags()
	for _, p := range r.passwords {
		words = append(words, "#"+p.hash)
	}
	words = append(words, r.selectors[0].String())
	for _, s := range r.selectors[1:] {
		words = append(words, "("+s.String()+")")
	}
	return strings.Join(words, " ")
}

// String returns the selector's rules.
func (s *selector) String() string {
	d := s.describe()
	var words []string
	if d.Keys != "" {
		words = append(words, d.Keys)
	}
	if !s.allChannels {
		words = append(words, "resetchannels")
	}
	if d.Channels != "" {
		words = append(words, d.Channels)
	}
	return strings.Join(append(words, d.Commands), " ")
}

// describe returns keys, channels and commands apart.
func (s *selector) describe() (d SelectorDescription) {
	d.Commands = "-@all"
	if s.newCommands {
		d.Commands = "+@all"
	}
	if s.commandText != "" {
		d.Commands += " " + s.commandText
	}
	if s.allKeys {
		d.Keys = "~*"
	} else {
		words := make([]string, len(s.keys))
		for i, p := range s.keys {
			words[i] = p.String()
		}
		d.Keys = strings.Join(words, " ")
	}
	if s.allChannels {
		d.Channels = "&*"
	} else if len(s.channels) > 0 {
		d.Channels = "&" + strings.Join(s.channels, " &")
	}
	return d
}
