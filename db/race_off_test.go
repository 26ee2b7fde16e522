//go:build !race

package db_test

const underRace = false
