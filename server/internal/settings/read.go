package settings

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/stavedb/stave/server/conf"
)

// Reading a file: every line is looked at, and all mistakes are told at once.

// contents are what a file and those that it includes say.
type contents struct {
	values   map[string]string // by name
	users    []conf.Directive  // the lines "user NAME RULE ..."
	files    []string
	warnings []string
}

// mostErrors is how many mistakes of a file are told.
const mostErrors = 50

// read reads a file. Of a directive that stands twice the last one holds, but of those that take several lines. The error
// names all that is wrong, in the order of the files and their lines.
func (c *Config) read(path string) (*contents, error) {
	list, files, err := conf.Load(path)
	r := reader{contents: contents{values: map[string]string{}, files: files}, wrong: conf.Errors(err), at: map[string]*conf.Directive{}}
	for i := range list {
		line := &list[i]
		r.warnAboutPassword(line)
		if line.Name != "user" {
			r.take(line)
			continue
		}
		if len(line.Args) == 0 {
			r.wrong = append(r.wrong, line.Errorf("user takes a name, and rules"))
		} else if err := c.JudgeUser(line); err != nil {
			r.wrong = append(r.wrong, err)
		}
		r.users = append(r.users, *line)
	}
	r.judgeTogether()
	if len(r.wrong) > 0 {
		return nil, inOrder(r.wrong, files)
	}
	r.warnings = append(r.warnings, unusedWarnings(path, r.unused)...)
	return &r.contents, nil
}

// inOrder joins errors by file and line, without those that are too many.
func inOrder(wrong []error, files []string) error {
	place := func(err error) (file, line int) {
		var at *conf.Error
		if !errors.As(err, &at) {
			return -1, 0
		}
		return slices.Index(files, at.File), at.Line
	}
	slices.SortStableFunc(wrong, func(a, b error) int {
		fileA, lineA := place(a)
		fileB, lineB := place(b)
		return cmp.Or(cmp.Compare(fileA, fileB), cmp.Compare(lineA, lineB))
	})
	if more := len(wrong) - mostErrors; more > 0 {
		wrong = append(wrong[:mostErrors:mostErrors], fmt.Errorf("and %d more", more))
	}
	return errors.Join(wrong...)
}

// reader reads one file.
type reader struct {
	contents
	wrong  []error
	at     map[string]*conf.Directive // the last line of each setting
	unused []unused                   // what has no effect
	warned []string                   // files with a password that others may read
}

// unused is a directive without an effect.
type unused struct {
	line *conf.Directive
	why  string
	loud bool // whoever has written it may expect something: it has a warning of its own
}

// warnAboutPassword warns once for each file.
func (r *reader) warnAboutPassword(line *conf.Directive) {
	if !slices.Contains(r.warned, line.File) && hasPassword(line) && othersMayRead(line.File) {
		r.warned = append(r.warned, line.File)
		r.warnings = append(r.warnings, line.Errorf("a password, and other users of the machine may read the file; chmod 600 it").Error())
	}
}

// take takes a line of a setting.
func (r *reader) take(line *conf.Directive) {
	if known, is := ignored[line.Name]; is {
		if strings.Join(line.Args, " ") != known.stock {
			r.unused = append(r.unused, unused{line, known.why, false})
		}
		return
	}
	d, err := find(line.Name)
	if err != nil {
		r.wrong = append(r.wrong, line.Errorf("%w", err))
		return
	}
	before, again := r.values[d.Name]
	if !again {
		before = d.def
	}
	value, err := d.lineValue(line.Args, before, again)
	why := ""
	if err == nil && d.tolerates != nil {
		if why = d.tolerates(value); why != "" {
			value = d.def
		}
	}
	if err == nil && d.Mode == Fixed && value != d.def {
		err = d.refusal()
	}
	if err != nil {
		r.wrong = append(r.wrong, line.Errorf("%w", err))
		return
	}
	r.values[d.Name], r.at[d.Name] = value, line
	switch {
	case why != "":
		r.unused = append(r.unused, unused{line, why, true})
	case d.Mode == kept && value != d.def && !again:
		r.unused = append(r.unused, unused{line, strings.TrimSuffix(d.meaning, "."), false})
	}
}

// ErrTwoPlaces is the refusal of users in two places.
var ErrTwoPlaces = errors.New("users stand in the configuration file, in the file that aclfile names, or in Options.Users, not in two of these")

// judgeTogether looks at what the file says as a whole: at users in two places, and at settings that need others or the
// last of several lines.
func (r *reader) judgeTogether() {
	if len(r.users) > 0 && r.values["aclfile"] != "" {
		r.wrong = append(r.wrong, r.users[0].Errorf("%w", ErrTwoPlaces))
	}
	for _, host := range strings.Fields(r.values["bind"]) {
		if !isHost(host) {
			r.wrong = append(r.wrong, r.at["bind"].Errorf("bind: %q is neither an address nor the name of a host", host))
		}
	}
	r.explainPolicy()
}

// explainPolicy says what a bound means whose writer may have had data in mind: in a file without maxdisk it is that, too.
func (r *reader) explainPolicy() {
	policy := Table["maxmemory-policy"]
	limit := r.values["maxmemory"]
	if value := r.values[policy.Name]; limit == "" || limit == "0" || value == "" || value == policy.def {
		return
	}
	said := "bounds the index in memory, about 20 bytes a key: keys are evicted when it takes more. Values are on disk, which maxdisk bounds"
	if _, given := r.values["maxdisk"]; !given {
		if value, err := Table["maxdisk"].canonical(limit, ""); err == nil {
			r.values["maxdisk"] = value
			said = "bounds the index in memory, about 20 bytes a key, and the directory on disk, as there is no maxdisk: keys are evicted when either takes more"
		}
	}
	r.warnings = append(r.warnings, r.at["maxmemory"].Errorf("maxmemory %s %s", limit, said).Error())
}

// unusedWarnings is one line for what expects nothing, and one for each of the others.
func unusedWarnings(path string, list []unused) (warnings []string) {
	var names []string
	var quiet *unused
	for i, u := range list {
		switch {
		case u.loud:
			warnings = append(warnings, u.line.Errorf("%s %s has no effect: %s", u.line.Name, strings.Join(u.line.Args, " "), u.why).Error())
		case !slices.Contains(names, u.line.Name):
			names, quiet = append(names, u.line.Name), &list[i]
		}
	}
	switch {
	case len(names) == 1:
		warnings = append(warnings, quiet.line.Errorf("%s has no effect: %s", quiet.line.Name, quiet.why).Error())
	case len(names) > 1:
		warnings = append(warnings, fmt.Sprintf("%s: %d settings have no effect here: %s", path, len(names), strings.Join(names, ", ")))
	}
	return warnings
}

// hasPassword says whether a line has a password, or the hash of one.
func hasPassword(line *conf.Directive) bool {
	if line.Name != "user" {
		return strings.EqualFold(line.Name, "requirepass") && len(line.Args) > 0 && line.Args[0] != ""
	}
	return slices.ContainsFunc(line.Args, func(rule string) bool { return strings.HasPrefix(rule, ">") || strings.HasPrefix(rule, "#") })
}

// othersMayRead looks at the permissions of a file, where the system has such.
func othersMayRead(path string) bool {
	info, err := os.Stat(path)
	return err == nil && runtime.GOOS != "windows" && info.Mode()&0o077 != 0
}

// lineValue is the value after another line of a file.
func (d *Directive) lineValue(args []string, before string, again bool) (string, error) {
	text := strings.Join(args, " ")
	switch {
	case len(args) == 0 || d.each == 0 && len(args) > 1:
		return "", fmt.Errorf("%s takes one argument, not %d", d.Name, len(args))
	case d.Name == "save" && again && text != "": // lines add up
		text = before + " " + text
	}
	return d.canonical(text, before)
}
