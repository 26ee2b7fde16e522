package settings

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestDirectives looks at every row of the table.
func TestDirectives(t *testing.T) {
	for name, d := range Table {
		if name != strings.ToLower(name) || d.meaning == "" || !strings.HasSuffix(d.meaning, ".") {
			t.Errorf("%s: name or meaning %q", name, d.meaning)
		}
		if got, err := d.Kind.Check(d.def, d.def); (err != nil || got != d.def) && d.def != "" {
			t.Errorf("%s: the default %q is checked as %q, %v", name, d.def, got, err)
		}
		if (d.Refusal != "") != (d.Mode == Fixed) {
			t.Errorf("%s: %v, refusal %q", name, d.Mode, d.Refusal)
		}
		if near := nearest(name+"x", Names); editDistance(near, name+"x", 5) > 1 {
			t.Errorf("%sx: nearest is %q", name, near)
		}
		if lines := d.lines(d.def); d.each != 0 {
			if got, err := d.Kind.Check(strings.Join(flat(lines), " "), d.def); got != d.def || err != nil && d.def != "" {
				t.Errorf("%s: lines %q are read as %q, %v", name, lines, got, err)
			}
		}
	}
}

func flat(lines [][]string) (all []string) {
	for _, line := range lines {
		all = append(all, line...)
	}
	return all
}

// TestMisspelt names what was meant, if that can be told.
func TestMisspelt(t *testing.T) {
	for name, want := range map[string]string{
		"maxclient": `unknown directive "maxclient": did you mean "maxclients"?`, "MaxMemroy": `unknown directive "MaxMemroy": did you mean "maxmemory"?`,
		"prot": `unknown directive "prot": did you mean "port"?`, "qqqqq": `unknown directive "qqqqq"`,
		"loadmodule": `"loadmodule" is not supported: there are no modules; leave the line out, and the commands of the module are unknown`, strings.Repeat("x", 1000): "unknown directive \"" + strings.Repeat("x", 1000) + "\"",
	} {
		if _, err := find(name); err == nil || err.Error() != want {
			t.Errorf("%.20s: %v", name, err)
		}
	}
}

var update = flag.Bool("update", false, "write the pages again")

// sections are the parts of the documentation of the settings.
var sections = []struct {
	title string
	rows  []Directive
}{
	{"Network", networkDirectives}, {"Security", securityDirectives}, {"Memory", memoryDirectives}, {"Storage", storageDirectives},
	{"Observation", observationDirectives}, {"Encodings", encodingDirectives}, {"Replication", replicationDirectives}, {"Process", processDirectives}, {"Without effect", noEffectDirectives},
}

// TestSettingsDocumentation keeps docs/appendix/settings.md and docs/stave.conf equal to the table.
func TestSettingsDocumentation(t *testing.T) {
	var page, file strings.Builder
	page.WriteString("# Settings\n\nGenerated from the table of settings: `go test ./server/internal/settings -run SettingsDocumentation -update`. *live* may change while the server\n" +
		"runs (CONFIG SET, or a change of the file); *at the start* needs a restart; *no effect* is accepted and shown, because what it is about does\n" +
		"not exist here; *fixed* has no other value. `(own)` marks what Redis does not have. OPERATIONS.md says where settings come from.\n")
	file.WriteString("# Settings of stave serve, with their defaults. Generated from the table of settings.\n#\n" +
		"# Use it by: stave serve --config stave.conf. The syntax is that of redis.conf. A setting that is not here\n" +
		"# has its default; $STAVE_NAME and flags hold against this file. Sizes take units: 1k is 1000, 1kb is 1024.\n" +
		"# What has no effect here, and is accepted for files of Redis, is listed in docs/appendix/settings.md.\n")
	for _, section := range sections {
		fmt.Fprintf(&page, "\n## %s\n\n| setting | default | values | changes | meaning |\n|---|---|---|---|---|\n", section.title)
		if slices.ContainsFunc(section.rows, func(d Directive) bool { return d.Mode == Live || d.Mode == AtStart }) {
			fmt.Fprintf(&file, "\n######## %s\n", section.title)
		}
		for _, d := range section.rows {
			names := "`" + strings.Join(d.Names(), "`, `") + "`"
			def := ""
			if d.def != "" {
				def = "`" + d.def + "`"
			}
			fmt.Fprintf(&page, "| %s | %s | %s | %s | %s |\n", names, def, d.Kind.text, d.Mode, strings.ReplaceAll(d.meaning, "|", "\\|"))
			if d.Mode != Live && d.Mode != AtStart {
				continue
			}
			how := ""
			if d.Mode == AtStart {
				how = " Needs a restart."
			}
			fmt.Fprintf(&file, "\n# %s%s\n# Values: %s.\n", d.meaning, how, d.Kind.text)
			for _, line := range d.lines(d.def) {
				text := strings.Join(line, " ")
				if text == "" {
					text = `""`
				}
				fmt.Fprintf(&file, "# %s %s\n", d.Name, text)
			}
		}
	}
	for path, want := range map[string]string{"../../../docs/appendix/settings.md": page.String(), "../../../docs/stave.conf": file.String()} {
		if *update {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if have, err := os.ReadFile(path); err != nil || string(have) != want {
			t.Errorf("%s is not what the table says (%v); run go test ./server/internal/settings -run SettingsDocumentation -update", path, err)
		}
	}
}

// TestStaveConfIsRead: the file in the documentation is one, also with all its comments of settings taken as settings.
func TestStaveConfIsRead(t *testing.T) {
	text, err := os.ReadFile("../../../docs/stave.conf")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		if word, _, _ := strings.Cut(strings.TrimPrefix(line, "# "), " "); Table[word] != nil {
			line = strings.TrimPrefix(line, "# ")
		}
		lines = append(lines, line)
	}
	path := t.TempDir() + "/stave.conf"
	if err := os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	c := New()
	warnings, err := c.Load(path)
	if err != nil || len(warnings) > 0 {
		t.Error(warnings, err)
	}
	for name, d := range Table {
		if c.Get(name) != d.def {
			t.Errorf("%s: %q, default %q", name, c.Get(name), d.def)
		}
	}
}
