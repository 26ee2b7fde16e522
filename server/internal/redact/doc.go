// Package redact says which arguments of a request are secret. Whatever keeps or shows the arguments of a request
// (MONITOR, SLOWLOG) shows what [Args] returns. Commands that are refused are shown to nobody. It is a table and pure
// functions.
package redact
