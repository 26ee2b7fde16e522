//go:build !race

package keydir_test

const underRace = false
