package main

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestParseStatus(t *testing.T) {
	const text = "\n" +
		"Package: a\nStatus: install ok installed\nVersion: 1:2-3\nSection: libs\nArchitecture: amd64\nInstalled-Size: 12\n" +
		"Pre-Depends: libc6 (>= 2.36)\nDepends: b | c:any,\n d:amd64 [linux-any] <!nocheck>, b\n" +
		"Description: first: line\n second line\n .\n third: line\n" +
		"\n \n" +
		"Package: gone\nStatus: deinstall ok config-files\n\n" +
		"Package: half\nStatus: install ok half-installed\n\n" +
		"Package: a\r\nArchitecture: i386\r\n"
	packages, err := parseStatus(text, "status")
	if err != nil {
		t.Fatal(err)
	}
	want := []Package{
		{Name: "a", Size: 12, Needs: []string{"b", "c", "d", "libc6"}, Fields: map[string]string{
			"Package": "a", "Status": "install ok installed", "Version": "1:2-3", "Section": "libs", "Architecture": "amd64",
			"Installed-Size": "12", "Pre-Depends": "libc6 (>= 2.36)", "Depends": "b | c:any,\n d:amd64 [linux-any] <!nocheck>, b",
			"Description": "first: line\n second line\n .\n third: line",
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
	packages, err := parseStatus(text, "status")
	if err != nil {
		t.Fatal(err)
	}
	if len(packages) != 2 || packages[0].Fields["Description"] != long+"\n "+long || packages[1].Name != "b" {
		t.Fatalf("%d packages", len(packages))
	}
	if got, want := packages[0].Needs, []string{"last", "some-library"}; !slices.Equal(got, want) {
		t.Errorf("needs %q, want %q", got, want)
	}
}

func TestParseStatusErrors(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"no field", "Package: a\nnonsense\n", `status:2: not a field, or there twice: "nonsense"`},
		{"no name of a field", "Package: a\n: x\n", "status:2: not a field"},
		{"space in a name", "Package: a\nSome Field: x\n", "status:2: not a field"},
		{"continues nothing", " x\n", "status:1: not a field"},
		{"continues nothing after a blank line", "Package: a\n\n x\n", "status:3: not a field"},
		{"field twice", "Package: a\nVersion: 1\nVersion: 2\n", `status:3: not a field, or there twice: "Version: 2"`},
		{"no package", "\n\nVersion: 1\nSection: x\n", `status:3: Package "" is no name of a package`},
		{"empty name", "Package:\n", `status:1: Package "" is no name of a package`},
		{"bad name", "Package: a b\n", `status:1: Package "a b" is no name of a package`},
		{"package twice", "Package: a\n\nPackage: a\nArchitecture: i386\n\nPackage: a\nArchitecture: i386\n",
			"status:6: package a:i386 is there twice"},
		{"size no number", "Package: a\nInstalled-Size: big\n", `status:1: Installed-Size "big" is no number of KiB`},
		{"size negative", "Package: a\nInstalled-Size: -1\n", "status:1: Installed-Size \"-1\" is no number of KiB"},
		{"bad dependency", "Package: a\nVersion: 1\nDepends: b, c |\n", `status:1: "" is no dependency`},
		{"bad early dependency", "Package: a\nPre-Depends: (>= 1)\n", `status:1: "(>= 1)" is no dependency`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			packages, err := parseStatus(test.text, "status")
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%d packages, error %v, want %s", len(packages), err, test.want)
			}
		})
	}
}
