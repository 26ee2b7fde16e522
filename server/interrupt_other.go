//go:build !linux

package server

// probeDescriptor knows nothing: here commands end when their connection is closed by the server, and not when the client has left.
func probeDescriptor(int) linkState { return linkUp }
