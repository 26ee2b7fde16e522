//go:build !linux

package main

import "errors"

// runFirst is for Linux only.
func runFirst() (end func() error, err error) { return nil, errors.ErrUnsupported }
