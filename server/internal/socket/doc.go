// Package socket asks the system about connections: which descriptors are ready ([Poller], on Linux), and whether
// anybody still reads at the other end ([ProbeOf]). It knows no session and starts no goroutine.
package socket
