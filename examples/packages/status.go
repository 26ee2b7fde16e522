package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Package is what the program keeps of one installed package.
type Package struct {
	Name   string
	Fields map[string]string // of its paragraph, with a line break before every continuation line
	Size   int64             // installed, in KiB
	Needs  []string          // the names of the packages that it depends on, sorted
}

// A name of a package, after Debian Policy 5.6.1 (dpkg lets upper case pass, so this does), and one with what restricts it as
// a dependency: "perl:any (>= 5.36) [linux-any]".
var (
	packageName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9+._-]*$`)
	dependency  = regexp.MustCompile(`(?s)^\s*([A-Za-z0-9][A-Za-z0-9+._-]*)\s*([:(\[<].*)?$`)
)

// parseStatus reads a dpkg status file, whose paragraphs each describe one package, and returns those that are installed,
// in their order. An error names the file and the line, or the first line of the paragraph.
func parseStatus(text, file string) (packages []Package, err error) {
	seen := make(map[string]bool)
	fields, first, last := make(map[string]string), 0, ""
	for i, line := range strings.Split(text+"\n", "\n") { // The end of the file ends the last paragraph, too.
		line = strings.TrimRight(line, " \t\r")
		name, value, ok := strings.Cut(line, ":")
		_, twice := fields[name]
		switch {
		case line == "" && len(fields) > 0:
			p, err := parsePackage(fields)
			if err != nil {
				return nil, fmt.Errorf("%s:%d: %w", file, first, err)
			}
			if seen[p.Name] { // A library may be installed for two architectures.
				p.Name += ":" + fields["Architecture"]
			}
			if status := fields["Status"]; status == "" || strings.HasSuffix(status, " installed") {
				if seen[p.Name] {
					return nil, fmt.Errorf("%s:%d: package %s is there twice", file, first, p.Name)
				}
				seen[p.Name] = true
				packages = append(packages, p)
			}
			fields, last = make(map[string]string), ""
		case line == "":
		case last != "" && (line[0] == ' ' || line[0] == '\t'):
			fields[last] += "\n" + line
		case !ok || name == "" || twice || strings.ContainsAny(name, " \t"):
			return nil, fmt.Errorf("%s:%d: not a field, or there twice: %.40q", file, i+1, line)
		default:
			if len(fields) == 0 {
				first = i + 1
			}
			fields[name], last = strings.TrimSpace(value), name
		}
	}
	return packages, nil
}

// parsePackage makes a package of the fields of a paragraph.
func parsePackage(fields map[string]string) (p Package, err error) {
	p = Package{Name: fields["Package"], Fields: fields}
	if !packageName.MatchString(p.Name) {
		return p, fmt.Errorf("Package %.40q is no name of a package", p.Name)
	}
	if size := fields["Installed-Size"]; size != "" {
		if p.Size, err = strconv.ParseInt(size, 10, 64); err != nil || p.Size < 0 {
			return p, fmt.Errorf("Installed-Size %.40q is no number of KiB", size)
		}
	}
	p.Needs, err = parseDepends(fields["Pre-Depends"] + "," + fields["Depends"])
	return p, err
}

// parseDepends returns the names in a list of dependencies, each once, in order. "b (>= 1) | c, a" holds a, b and c: each
// alternative counts.
func parseDepends(list string) (names []string, err error) {
	for clause := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(clause) == "" {
			continue // A comma at the end is legal.
		}
		for alternative := range strings.SplitSeq(clause, "|") {
			match := dependency.FindStringSubmatch(alternative)
			if match == nil {
				return nil, fmt.Errorf("%.40q is no dependency", strings.TrimSpace(alternative))
			}
			names = append(names, match[1])
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
