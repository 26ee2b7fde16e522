package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Package is what the program keeps of one installed package.
type Package struct {
	Name         string
	Version      string
	Section      string // "" if the file does not say
	Architecture string
	Description  string // its first line
	Size         int64  // installed, in KiB
	Depends      string // Depends and Pre-Depends as the file has them, joined by a comma
}

// Needs returns the names of the packages that p depends on.
func (p Package) Needs() []string {
	names, err := parseDepends(p.Depends)
	if err != nil {
		panic("BUG: parseStatus has let through bad dependencies: " + err.Error())
	}
	return names
}

// paragraph is one block of lines of a control file, as Debian Policy 5.1 calls it: fields, each a name and a value.
type paragraph struct {
	line   int // of its first field
	fields map[string]field
}

type field struct {
	value string // with a line break before every continuation line
	line  int
}

// parseStatus reads a dpkg status file, whose paragraphs each describe one package, and returns those that are installed,
// in their order. An error names file and line.
func parseStatus(r io.Reader, file string) ([]Package, error) {
	p := parser{in: bufio.NewReader(r), file: file}
	var packages []Package
	seen := make(map[string]bool)
	for {
		para, err := p.next()
		if err != nil || para == nil {
			return packages, err
		}
		pkg, installed, err := p.pkg(para)
		if err != nil {
			return nil, err
		}
		if !installed {
			continue
		}
		if seen[pkg.Name] { // A library may be installed for two architectures.
			pkg.Name += ":" + pkg.Architecture
		}
		if seen[pkg.Name] {
			return nil, p.fail(para.line, "package %s is there twice", pkg.Name)
		}
		seen[pkg.Name] = true
		packages = append(packages, pkg)
	}
}

type parser struct {
	in   *bufio.Reader
	file string
	line int // number of the line that was read last
}

func (p *parser) fail(line int, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", p.file, line, fmt.Sprintf(format, args...))
}

// next returns the next paragraph, nil at the end of the file. Lines may have any length.
func (p *parser) next() (*paragraph, error) {
	para := paragraph{fields: make(map[string]field)}
	last := ""
	for {
		line, err := p.in.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%s:%d: %w", p.file, p.line+1, err)
		}
		if line != "" {
			p.line++
		}
		line = strings.TrimRight(line, "\r\n")
		switch {
		case strings.TrimSpace(line) == "":
			if len(para.fields) > 0 {
				return &para, nil
			}
		case line[0] == ' ' || line[0] == '\t':
			if last == "" {
				return nil, p.fail(p.line, "a continuation line that continues nothing")
			}
			f := para.fields[last]
			f.value += "\n" + line
			para.fields[last] = f
		default:
			name, value, ok := strings.Cut(line, ":")
			if !ok || name == "" || strings.ContainsAny(name, " \t") {
				return nil, p.fail(p.line, "not a field: %.40q", line)
			}
			if _, twice := para.fields[name]; twice {
				return nil, p.fail(p.line, "field %s is there twice", name)
			}
			if len(para.fields) == 0 {
				para.line = p.line
			}
			para.fields[name], last = field{strings.TrimSpace(value), p.line}, name
		}
		if err != nil { // The end of the file ends the last paragraph, too.
			if len(para.fields) > 0 {
				return &para, nil
			}
			return nil, nil
		}
	}
}

// pkg picks the fields that the program keeps. A package that was removed has left a paragraph whose Status says so.
func (p *parser) pkg(para *paragraph) (pkg Package, installed bool, err error) {
	get := func(name string) string { return para.fields[name].value }
	name, ok := para.fields["Package"]
	if !ok {
		return pkg, false, p.fail(para.line, "a paragraph without the field Package")
	}
	if !packageName(name.value) {
		return pkg, false, p.fail(name.line, "%.40q is no name of a package", name.value)
	}
	if status := get("Status"); status != "" && !strings.HasSuffix(status, " installed") {
		return pkg, false, nil
	}
	pkg = Package{Name: name.value, Version: get("Version"), Section: get("Section"), Architecture: get("Architecture")}
	pkg.Description, _, _ = strings.Cut(get("Description"), "\n")
	if size, ok := para.fields["Installed-Size"]; ok {
		pkg.Size, err = strconv.ParseInt(size.value, 10, 64)
		if err != nil || pkg.Size < 0 {
			return pkg, false, p.fail(size.line, "Installed-Size %.40q is no number of KiB", size.value)
		}
	}
	var depends []string
	for _, name := range []string{"Pre-Depends", "Depends"} {
		f := para.fields[name]
		if _, err := parseDepends(f.value); err != nil {
			return pkg, false, p.fail(f.line, "%s: %v", name, err)
		}
		if f.value != "" {
			depends = append(depends, f.value)
		}
	}
	pkg.Depends = strings.Join(depends, ", ")
	return pkg, true, nil
}

// parseDepends returns the names in a list of dependencies, each once, in order. "perl:any (>= 5.36) | perl5, tar [linux-any]"
// holds perl, perl5 and tar: each alternative counts, and versions and architectures do not.
func parseDepends(list string) ([]string, error) {
	var names []string
	for clause := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(clause) == "" {
			continue // A comma at the end is legal.
		}
		for alternative := range strings.SplitSeq(clause, "|") {
			name := alternative
			if i := strings.IndexAny(name, "([<"); i >= 0 {
				name = name[:i]
			}
			name, _, _ = strings.Cut(strings.TrimSpace(name), ":")
			if !packageName(name) {
				return nil, fmt.Errorf("%.40q is no dependency", strings.TrimSpace(alternative))
			}
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// packageName says whether s may be a name, after Debian Policy 5.6.1. dpkg lets upper case pass, so this does.
func packageName(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && (i == 0 || !strings.ContainsRune("+-._", rune(c))) {
			return false
		}
	}
	return s != ""
}
