package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
)

// Package is what the program keeps of one installed package.
type Package struct {
	Name   string
	Fields map[string]string // by name, with long values on one line
	Size   int64             // installed, in KiB
	Needs  []string          // the names of the packages that it depends on, sorted
}

// parseStatus reads a dpkg status file and returns the installed packages in the order of the file. A paragraph of the file
// describes one package and looks like the header of a mail.
func parseStatus(r io.Reader) (packages []Package, err error) {
	seen := make(map[string]bool)
	paragraphs := textproto.NewReader(bufio.NewReader(r))
	for number := 1; err == nil; number++ {
		var header textproto.MIMEHeader
		if header, err = paragraphs.ReadMIMEHeader(); err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("paragraph %d: %w", number, err)
		}
		if status := header.Get("Status"); len(header) == 0 || status != "" && !strings.HasSuffix(status, " installed") {
			continue
		}
		p, err := parsePackage(header)
		if seen[p.Name] { // A library may be installed for two architectures.
			p.Name += ":" + header.Get("Architecture")
		}
		if err == nil && (p.Name == "" || seen[p.Name]) {
			err = fmt.Errorf("package %q has no name or is there twice", p.Name)
		}
		if err != nil {
			return nil, fmt.Errorf("paragraph %d: %w", number, err)
		}
		seen[p.Name] = true
		packages = append(packages, p)
	}
	return packages, nil
}

func parsePackage(header textproto.MIMEHeader) (p Package, err error) {
	p = Package{Name: header.Get("Package"), Fields: make(map[string]string)}
	for name := range header {
		p.Fields[name] = header.Get(name)
	}
	if size := header.Get("Installed-Size"); size != "" {
		if p.Size, err = strconv.ParseInt(size, 10, 64); err != nil || p.Size < 0 {
			return p, fmt.Errorf("Installed-Size %.40q is not a number of KiB", size)
		}
	}
	// In "b:any (>= 1) | c, a" each alternative counts: a, b and c.
	for _, need := range strings.FieldsFunc(header.Get("Pre-Depends")+","+header.Get("Depends"), func(r rune) bool { return r == ',' || r == '|' }) {
		if name := strings.FieldsFunc(need, func(r rune) bool { return strings.ContainsRune(" :([<", r) }); len(name) > 0 {
			p.Needs = append(p.Needs, name[0])
		}
	}
	slices.Sort(p.Needs)
	p.Needs = slices.Compact(p.Needs)
	return p, nil
}
