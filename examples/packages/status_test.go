package main

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestParseStatus(t *testing.T) {
	const text = "Package: a\nStatus: install ok installed\nVersion: 1:2-3\nSection: libs\nArchitecture: amd64\nInstalled-Size: 12\n" +
		"Pre-Depends: libc6 (>= 2.36)\nDepends: b | c:any,\n d:amd64 [linux-any] <!nocheck>, b, e(>= 1) ,\n" +
		"Description: first: line\n second line\n .\n third: line\n" +
		"\n\n" +
		"Package: gone\nStatus: deinstall ok config-files\n\n" +
		"Package: half\nStatus: install ok half-installed\n\n" +
		"Package: a\r\nArchitecture: i386\r\n"
	packages, err := parseStatus(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []Package{
		{Name: "a", Size: 12, Needs: []string{"b", "c", "d", "e", "libc6"}, Fields: map[string]string{
			"Package": "a", "Status": "install ok installed", "Version": "1:2-3", "Section": "libs", "Architecture": "amd64",
			"Installed-Size": "12", "Pre-Depends": "libc6 (>= 2.36)", "Depends": "b | c:any, d:amd64 [linux-any] <!nocheck>, b, e(>= 1) ,",
			"Description": "first: line second line . third: line",
		}},
		{Name: "a:i386", Fields: map[string]string{"Package": "a", "Architecture": "i386"}},
	}
	if !reflect.DeepEqual(packages, want) {
		t.Fatalf("packages\n%+v, want\n%+v", packages, want)
	}
}

// TestParseStatusLongLines has lines beyond 64 KiB.
func TestParseStatusLongLines(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	depends := strings.Repeat("some-library (>= 1.0), ", 10_000) + "last"
	text := "Package: a\nDescription: " + long + "\n " + long + "\nDepends: " + depends + "\n\nPackage: b"
	packages, err := parseStatus(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(packages) != 2 || packages[0].Fields["Description"] != long+" "+long || packages[1].Name != "b" {
		t.Fatalf("%d packages", len(packages))
	}
	if got, want := packages[0].Needs, []string{"last", "some-library"}; !slices.Equal(got, want) {
		t.Errorf("needs %q, want %q", got, want)
	}
}

func TestParseStatusErrors(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"no field", "Package: a\nnonsense\n", `paragraph 1: malformed MIME header`},
		{"no name of a field", "Package: a\n: x\n", "paragraph 1: malformed MIME header"},
		{"continues nothing", " x\n", "paragraph 1: malformed MIME header"},
		{"no package", "Version: 1\nSection: x\n", `paragraph 1: package "" has no name`},
		{"empty name", "Package: a\n\nPackage:\n", `paragraph 2: package "" has no name`},
		{"package twice", "Package: a\n\nPackage: a\nArchitecture: i386\n\nPackage: a\nArchitecture: i386\n",
			`paragraph 3: package "a:i386" has no name or is there twice`},
		{"size no number", "Package: a\nInstalled-Size: big\n", `paragraph 1: Installed-Size "big" is not a number of KiB`},
		{"size negative", "Package: a\nInstalled-Size: -1\n", `paragraph 1: Installed-Size "-1" is not a number of KiB`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			packages, err := parseStatus(strings.NewReader(test.text))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%d packages, error %v, want %s", len(packages), err, test.want)
			}
		})
	}
}
