// Package socket asks the system about connections: which descriptors are ready ([Poller], on Linux), whether
// anybody still reads at the other end ([ProbeOf]), and how many there may be ([FileLimit]). It knows no session and starts no goroutine.
package socket
